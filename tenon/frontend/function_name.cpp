#include "tenon/frontend/function_name.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/frontend/layer.h"

namespace tenon {
namespace {

// Where the arguments of "Scale<Pair<int, float>>" begin.
size_t template_name_end(std::string_view type) {
  int depth = 0;
  for (size_t i = type.size(); i-- > 0;) {
    if (type[i] == '>') ++depth;
    if (type[i] == '<' && --depth == 0) return i;
  }
  return type.size();
}

// The object of this process that holds an address.
struct Place {
  uintptr_t wanted = 0;
  std::string path;
  uintptr_t offset = 0;  // of the address, as the object's symbols count
};

int find_object(dl_phdr_info* info, size_t, void* data) {
  auto& place = *static_cast<Place*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || place.wanted < begin ||
        place.wanted - begin >= header.p_memsz) {
      continue;
    }
    place.path = *info->dlpi_name == '\0' ? "/proc/self/exe" : info->dlpi_name;
    place.offset = place.wanted - info->dlpi_addr;
    return 1;
  }
  return 0;
}

// Reads an object's symbols. Anything that is not as it should be ends the search.
class Symbols {
 public:
  explicit Symbols(std::span<const std::byte> file) : file_(file) {}

  // The mangled name of the only function at `offset`; empty otherwise.
  std::string_view at(uintptr_t offset) const {
    const auto header = read<ElfW(Ehdr)>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(ElfW(Shdr))) {
      return {};
    }
    for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
      for (size_t i = 0; i < header->e_shnum; ++i) {
        const auto section = read<ElfW(Shdr)>(header->e_shoff + i * sizeof(ElfW(Shdr)));
        if (!section || section->sh_type != type) continue;
        const auto strings =
            read<ElfW(Shdr)>(header->e_shoff + section->sh_link * sizeof(ElfW(Shdr)));
        if (strings) return search(*section, *strings, offset);
      }
    }
    return {};
  }

 private:
  template <class T>
  std::optional<T> read(uint64_t at) const {
    if (at > file_.size() || file_.size() - at < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }

  std::string_view search(const ElfW(Shdr) & section, const ElfW(Shdr) & strings,
                          uintptr_t offset) const {
    std::string_view found;
    const uint64_t count = section.sh_size / sizeof(ElfW(Sym));
    for (uint64_t i = 0; i < count; ++i) {
      const auto symbol = read<ElfW(Sym)>(section.sh_offset + i * sizeof(ElfW(Sym)));
      if (!symbol) return {};
      if (symbol->st_value != offset || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
      const std::string_view name = text(strings.sh_offset + symbol->st_name);
      if (!found.empty() && name != found) return {};  // code that was found equal and folded
      found = name;
    }
    return found;
  }

  std::string_view text(uint64_t at) const {
    if (at >= file_.size()) return {};
    const char* begin = reinterpret_cast<const char*>(file_.data()) + at;
    return {begin, strnlen(begin, file_.size() - at)};
  }

  std::span<const std::byte> file_;
};

// "tenon::(anonymous namespace)::gelu(tenon::Tensor const&)" → "gelu".
std::string short_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> whole(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? whole.get() : mangled;
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t i = name.find(anonymous); i != std::string::npos; i = name.find(anonymous)) {
    name.erase(i, anonymous.size());
  }
  name = name.substr(0, name.find('('));
  return class_name(name.substr(name.find(' ') == std::string::npos ? 0 : name.find(' ') + 1));
}

}  // namespace

std::string class_name(std::string_view type) {
  if (type.find("<lambda") != std::string_view::npos) return "lambda";  // GCC
  if (type.find("(lambda") != std::string_view::npos) return "lambda";  // clang
  if (type.ends_with('>')) type = type.substr(0, template_name_end(type));
  std::string name(type.substr(type.find_last_of(": ") + 1));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name.empty() ? "fn" : name;
}

std::string symbol_name(const void* address) {
  static std::mutex mutex;
  static std::map<const void*, std::string> known;
  std::lock_guard lock(mutex);
  auto [it, added] = known.try_emplace(address);
  if (!added) return it->second;
  Place place;
  place.wanted = reinterpret_cast<uintptr_t>(address);
  if (dl_iterate_phdr(find_object, &place) == 0) return "";
  try {
    const auto file = MappedFile::open(place.path);
    const std::string mangled(Symbols(file->bytes()).at(place.offset));
    if (!mangled.empty()) it->second = short_name(mangled);
  } catch (const IoError&) {
    return "";  // an object without a file has no names
  }
  return it->second;
}

std::string place_name(Here at) { return "fn(" + place_text(at) + ")"; }

}  // namespace tenon
