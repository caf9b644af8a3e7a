#include <algorithm>
#include <atomic>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/mmap.h"
#include "tenon/ir/op_def.h"
#include "tenon/ops/registry.h"
#include "tenon/program/artifact.h"
#include "tenon/program/artifact_header.h"
#include "tenon/program/decode.h"
#include "tenon/runtime/module_check.h"

namespace tenon::program {
namespace {

constexpr uint64_t kCheckedAtOpen = uint64_t{1} << 20;

// Runs `read` on a table of so many bytes; what it raises becomes a FormatError naming the file and
// the part.
template <class F>
auto reading(const std::string& path, std::string_view part, uint64_t table_bytes, F&& read) {
  const CopyBudget budget(table_bytes);
  try {
    return read();
  } catch (const FormatError&) {
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const Error& e) {
    throw FormatError(fmt::format("{}: {}: {} (file damaged)", path, part, e.message()),
                      {.label = "artifact_content"});
  }
}

}  // namespace

struct Artifact::Impl {
  std::shared_ptr<const MappedFile> file;
  Header header;
  const fb::Manifest* manifest = nullptr;
  std::string version;
  std::vector<ProgramInfo> programs;
  std::vector<SectionInfo> sections;
  std::unique_ptr<std::atomic<bool>[]> checked;

  [[noreturn]] void fail(std::string what, const char* label) const {
    throw FormatError(file->path() + ": " + std::move(what), {.label = label});
  }

  std::span<const std::byte> bytes(const fb::Section& section) const {
    return file->bytes().subspan(section.offset(), section.size());
  }

  void open(const std::string& path) {
    file = MappedFile::open(path);
    header = read_header(path, file->bytes());
    auto span = file->bytes().subspan(header.manifest_offset, header.manifest_bytes);
    Digest digest = hash_bytes(span);
    if (digest != header.manifest_digest) {
      fail(fmt::format("the manifest has digest {:.8}…, the header says {:.8}… (file damaged)",
                       to_hex(digest), to_hex(header.manifest_digest)),
           "artifact_digest");
    }
    manifest = table<fb::Manifest>(span, "manifest");
    version = decode(manifest->tenon_version());
    read_sections();
    for (size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].bytes <= kCheckedAtOpen) check(i);
    }
    reading(path, "manifest", header.manifest_bytes, [&] { read_programs(); });
  }

  template <class T>
  const T* table(std::span<const std::byte> span, const std::string& part) const {
    // A table takes four bytes and the offset to it four more, so there are no more tables than
    // this unless some are named again and again.
    const size_t max_tables = span.size() / 8 + 1;
    const auto* data = reinterpret_cast<const uint8_t*>(span.data());
    flatbuffers::Verifier verifier(data, span.size(), 16, max_tables);
    if (span.size() < 8 || !verifier.VerifyBuffer<T>(nullptr)) {
      fail(part + " is not well-formed (file damaged)", "artifact_content");
    }
    return flatbuffers::GetRoot<T>(data);
  }

  // Sections follow each other from the header to the manifest; what is between is zero.
  void read_sections() {
    uint64_t at = kHeaderBytes;
    uint32_t count = manifest->sections() == nullptr ? 0 : manifest->sections()->size();
    for (uint32_t i = 0; i < count; ++i) {
      const fb::Section* s = manifest->sections()->Get(i);
      bool right = s->offset() == at && s->size() <= header.manifest_offset - at &&
                   s->digest() != nullptr && s->digest()->size() == 32;
      if (!right) fail(fmt::format("section {} is out of place", i), "artifact_section");
      Digest digest;
      std::memcpy(digest.data(), s->digest()->data(), digest.size());
      sections.push_back({decode(s->name()), s->offset(), s->size(), to_hex(digest)});
      at += s->size();
      uint64_t end = std::min((at + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment,
                              header.manifest_offset);
      for (; at < end; ++at) {
        if (file->bytes()[at] != std::byte{0}) {
          fail(fmt::format("byte {} between sections is not zero (file damaged)", at),
               "artifact_padding");
        }
      }
    }
    if (at != header.manifest_offset) fail("sections are missing", "artifact_section");
    checked = std::make_unique<std::atomic<bool>[]>(std::max<size_t>(sections.size(), 1));
  }

  void expect_section(uint32_t index, fb::SectionKind kind) const {
    expect(index < sections.size() && manifest->sections()->Get(index)->kind() == kind,
           "no such section");
  }

  void read_programs() {
    expect(manifest->programs() != nullptr && manifest->programs()->size() > 0, "no program");
    for (const fb::Program* p : *manifest->programs()) {
      ProgramInfo info;
      info.signature = decode_signature(p->signature());
      info.weights = decode_weights(p->weights());
      info.nodes = p->nodes();
      expect_section(p->graph(), fb::SectionKind::Graph);
      info.graph_bytes = sections[p->graph()].bytes;
      info.has_module = p->has_module();
      if (p->has_module()) expect_section(p->module_(), fb::SectionKind::Module);
      if (p->has_eval_graphs()) expect_section(p->eval_graphs(), fb::SectionKind::Graph);
      if (p->code() != nullptr) {
        for (const fb::Code* code : *p->code()) {
          expect_section(code->section(), fb::SectionKind::Code);
          info.code.push_back({decode(code->level()), sections[code->section()].bytes});
        }
      }
      programs.push_back(std::move(info));
    }
  }

  void check(size_t index) const {
    if (checked[index].load(std::memory_order_acquire)) return;
    std::string is =
        to_hex(hash_bytes(bytes(*manifest->sections()->Get(static_cast<uint32_t>(index)))));
    if (is != sections[index].digest) {
      fail(fmt::format("section {} has digest {:.8}…, manifest says {:.8}… (file damaged)",
                       sections[index].name, is, sections[index].digest),
           "artifact_digest");
    }
    checked[index].store(true, std::memory_order_release);
  }

  std::span<const std::byte> section(uint32_t index) const {
    check(index);
    return bytes(*manifest->sections()->Get(index));
  }

  OpenSection open_constants() const {
    return [this](uint32_t index) -> SectionBytes {
      expect_section(index, fb::SectionKind::Constants);
      return {section(index), file};
    };
  }

  std::vector<ir::GraphPtr> graphs(uint32_t index) const {
    ops::register_all();
    const auto* table_ = table<fb::GraphModule>(section(index), sections[index].name);
    return reading(file->path(), sections[index].name, sections[index].bytes,
                   [&] { return decode_graphs(*table_, open_constants()); });
  }

  const fb::Program& program(size_t index) const {
    return *manifest->programs()->Get(static_cast<uint32_t>(index));
  }
};

Artifact::Artifact() : impl_(std::make_unique<Impl>()) {}
Artifact::~Artifact() = default;

std::shared_ptr<const Artifact> Artifact::open(const std::string& path) {
  std::shared_ptr<Artifact> artifact(new Artifact);
  artifact->impl_->open(path);
  return artifact;
}

const std::string& Artifact::path() const { return impl_->file->path(); }
uint64_t Artifact::bytes() const { return impl_->file->bytes().size(); }
uint32_t Artifact::format() const { return kArtifactFormat; }
const std::string& Artifact::tenon_version() const { return impl_->version; }
const std::vector<ProgramInfo>& Artifact::programs() const { return impl_->programs; }
const std::vector<SectionInfo>& Artifact::sections() const { return impl_->sections; }

size_t Artifact::find(const std::string& name) const {
  const std::vector<ProgramInfo>& all = impl_->programs;
  if (name.empty() && all.size() == 1) return 0;
  std::string names;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!name.empty() && all[i].signature.function == name) return i;
    names += (i == 0 ? "" : ", ") + all[i].signature.function;
  }
  throw KeyError(
      fmt::format("{}: {}, it holds {}", path(),
                  name.empty() ? "which program is not said" : "no program " + name, names),
      {.label = "artifact_program"});
}

ir::GraphPtr Artifact::graph(size_t index) const {
  ir::GraphPtr graph = impl_->graphs(impl_->program(index).graph()).back();
  const Signature& s = impl_->programs[index].signature;
  reading(path(), "signature of " + s.function, 0, [&] {
    expect(graph->params.size() == s.tensors.size() &&
               graph->results.size() == s.result_tensors.size(),
           "it does not fit the graph");
    for (size_t i = 0; i < s.tensors.size(); ++i) {
      expect(graph->params[i].dtype() == s.tensors[i].dtype &&
                 graph->params[i].shape() == s.tensors[i].shape &&
                 (!graph->writable[i] || s.tensors[i].writable),
             "it does not fit the graph");
    }
  });
  return graph;
}

std::vector<ir::GraphPtr> Artifact::eval_graphs(size_t index) const {
  const fb::Program& program = impl_->program(index);
  return program.has_eval_graphs() ? impl_->graphs(program.eval_graphs())
                                   : std::vector<ir::GraphPtr>();
}

std::shared_ptr<const abi::Module> Artifact::module(size_t index) const {
  const fb::Program& program = impl_->program(index);
  if (!program.has_module()) return nullptr;
  const std::string& part = impl_->sections[program.module_()].name;
  const auto* table = impl_->table<fb::Module>(impl_->section(program.module_()), part);
  return reading(path(), part, impl_->sections[program.module_()].bytes, [&] {
    auto module = std::make_shared<abi::Module>(decode_module(*table, impl_->open_constants()));
    if (program.code() != nullptr) {
      for (const fb::Code* code : *program.code()) {
        std::span<const std::byte> bytes = impl_->section(code->section());
        module->images.push_back(
            {decode(code->level()), {bytes.begin(), bytes.end()}, decode(code->offsets())});
      }
    }
    const Signature& s = impl_->programs[index].signature;
    std::vector<bool> writable;
    for (const TensorGuard& tensor : s.tensors) writable.push_back(tensor.writable);
    runtime::check_module(*module, writable);
    const abi::Program& entry = module->programs[module->entry];
    expect(entry.results == s.result_tensors.size(), "the plan does not fit the signature");
    for (size_t i = 0; i < s.tensors.size(); ++i) {
      expect(entry.slots[i].dtype == s.tensors[i].dtype &&
                 entry.slots[i].dims.size() == s.tensors[i].shape.size(),
             "the plan does not fit the signature");
    }
    return std::shared_ptr<const abi::Module>(std::move(module));
  });
}

void Artifact::check_all() const {
  for (size_t i = 0; i < impl_->sections.size(); ++i) impl_->check(i);
}

}  // namespace tenon::program
