#include "tenon/codegen/image_layout.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstring>
#include <map>

#include "tenon/base/error.h"

namespace tenon::codegen {
namespace {

namespace elf = llvm::ELF;
using llvm::object::ELFObjectFileBase;
using llvm::object::ELFRelocationRef;
using llvm::object::ELFSectionRef;
using llvm::object::ELFSymbolRef;
using llvm::object::RelocationRef;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;

constexpr uint64_t kMaxAlignment = 64;  // what an image is placed at

[[noreturn]] void fail(const std::string& what) {
  throw InternalError("codegen: image layout: " + what);
}

template <class T>
T take(llvm::Expected<T> value) {
  if (!value) fail(llvm::toString(value.takeError()));
  return *value;
}

bool fits(int64_t value, int width) {
  int64_t limit = int64_t{1} << (width - 1);
  return value >= -limit && value < limit;
}

// One object on its way to an image.
class Layout {
 public:
  explicit Layout(const ELFObjectFileBase& object) : object_(object) {}

  Image run(std::span<const std::string> entries) {
    place_sections(true);
    place_sections(false);
    for (const SectionRef& section : object_.sections()) relocate(section);
    Image image;
    image.bytes = std::move(bytes_);
    for (const std::string& entry : entries) image.offsets.push_back(find(entry));
    return image;
  }

 private:
  // Code first, then data: both are mapped read-and-execute.
  void place_sections(bool code) {
    for (const SectionRef& section : object_.sections()) {
      ELFSectionRef ref(section);
      if (!(ref.getFlags() & elf::SHF_ALLOC) || section.getSize() == 0) continue;
      if (ref.getType() == elf::SHT_NOTE || ref.getType() == elf::SHT_X86_64_UNWIND) continue;
      std::string label = take(section.getName()).str();
      if (ref.getFlags() & elf::SHF_WRITE) fail("section " + label + " is writable");
      if (section.isBSS() || section.isVirtual()) fail("section " + label + " has no content");
      if (section.isText() != code) continue;
      uint64_t align = std::max<uint64_t>(section.getAlignment().value(), code ? 64 : 16);
      if (align > kMaxAlignment) fail("section " + label + " wants more than 64-byte alignment");
      uint64_t offset = (bytes_.size() + align - 1) / align * align;
      llvm::StringRef content = take(section.getContents());
      bytes_.resize(offset + content.size());
      std::memcpy(bytes_.data() + offset, content.data(), content.size());
      offsets_[section.getIndex()] = offset;
    }
  }

  std::optional<uint64_t> address(const SymbolRef& symbol) const {
    auto section = take(symbol.getSection());
    if (section == object_.section_end()) return std::nullopt;
    auto found = offsets_.find(section->getIndex());
    if (found == offsets_.end()) return std::nullopt;
    return found->second + take(symbol.getValue());
  }

  uint64_t find(const std::string& entry) const {
    for (const ELFSymbolRef& symbol : object_.symbols()) {
      if (take(symbol.getName()) != entry) continue;
      if (auto where = address(symbol)) return *where;
    }
    fail("function " + entry + " is missing");
  }

  void relocate(const SectionRef& table) {
    auto target = take(table.getRelocatedSection());
    if (target == object_.section_end()) return;
    auto found = offsets_.find(target->getIndex());
    if (found == offsets_.end()) return;
    for (const RelocationRef& relocation : table.relocations()) apply(found->second, relocation);
  }

  void apply(uint64_t base, const RelocationRef& relocation) {
    auto symbol = relocation.getSymbol();
    if (symbol == object_.symbol_end()) fail("a relocation without symbol");
    auto value = address(*symbol);
    if (!value) fail("symbol " + take(symbol->getName()).str() + " is undefined");
    auto target = static_cast<int64_t>(*value) + take(ELFRelocationRef(relocation).getAddend());
    uint64_t place = base + relocation.getOffset();
    bool known = object_.getEMachine() == elf::EM_X86_64
                     ? apply_x86(relocation.getType(), place, target)
                     : apply_arm(relocation.getType(), place, target);
    if (!known) {
      llvm::SmallString<32> kind;
      relocation.getTypeName(kind);
      fail("relocation " + std::string(kind) + " is not supported");
    }
  }

  template <class T>
  T read(uint64_t place) const {
    if (place + sizeof(T) > bytes_.size()) fail("a relocation lies outside its section");
    T value;
    std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  template <class T>
  void write(uint64_t place, T value) {
    if (place + sizeof(T) > bytes_.size()) fail("a relocation lies outside its section");
    std::memcpy(bytes_.data() + place, &value, sizeof value);
  }

  void write_relative(uint64_t place, int64_t target) {
    int64_t delta = target - static_cast<int64_t>(place);
    if (!fits(delta, 32)) fail("a relative address does not fit 32 bits");
    write<uint32_t>(place, static_cast<uint32_t>(delta));
  }

  bool apply_x86(uint64_t kind, uint64_t place, int64_t target) {
    switch (kind) {
      case elf::R_X86_64_PC32:
      case elf::R_X86_64_PLT32: write_relative(place, target); return true;
      case elf::R_X86_64_PC64:
        write<uint64_t>(place, static_cast<uint64_t>(target) - place);
        return true;
      default: return false;
    }
  }

  // Replaces the bits of `mask` in the instruction at `place`.
  void patch(uint64_t place, uint32_t mask, uint32_t value) {
    write<uint32_t>(place, (read<uint32_t>(place) & ~mask) | (value & mask));
  }

  bool apply_arm(uint64_t kind, uint64_t place, int64_t target) {
    int64_t delta = target - static_cast<int64_t>(place);
    switch (kind) {
      case elf::R_AARCH64_PREL32: write_relative(place, target); return true;
      case elf::R_AARCH64_PREL64: write<uint64_t>(place, static_cast<uint64_t>(delta)); return true;
      case elf::R_AARCH64_CALL26:
      case elf::R_AARCH64_JUMP26:
        if (!fits(delta, 28)) fail("a branch does not reach");
        patch(place, 0x03ffffffu, static_cast<uint32_t>(delta >> 2));
        return true;
      case elf::R_AARCH64_ADR_PREL_LO21:
        if (!fits(delta, 21)) fail("an address does not reach");
        patch(place, (3u << 29) | (0x7ffffu << 5),
              (static_cast<uint32_t>(delta & 3) << 29) |
                  (static_cast<uint32_t>(delta >> 2 & 0x7ffff) << 5));
        return true;
      case elf::R_AARCH64_LD_PREL_LO19:
        if (!fits(delta, 21) || (delta & 3) != 0) fail("a constant does not reach");
        patch(place, 0x7ffffu << 5, static_cast<uint32_t>(delta >> 2 & 0x7ffff) << 5);
        return true;
      default: return false;
    }
  }

  const ELFObjectFileBase& object_;
  std::vector<std::byte> bytes_;
  std::map<uint64_t, uint64_t> offsets_;  // section index → offset in the image
};

}  // namespace

Image layout_image(std::span<const std::byte> object, std::span<const std::string> entries) {
  llvm::MemoryBufferRef buffer(
      llvm::StringRef(reinterpret_cast<const char*>(object.data()), object.size()), "kernels");
  auto file = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!file) fail(llvm::toString(file.takeError()));
  return Layout(*llvm::cast<ELFObjectFileBase>(file->get())).run(entries);
}

}  // namespace tenon::codegen
