#include "tenon/pipelines/llama/program_cache.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "tenon/base/error.h"
#include "tenon/base/hash.h"
#include "tenon/compiler/kernel_cache.h"
#include "tenon/runtime/cpu.h"

namespace tenon::pipelines {
namespace {

struct BuildId {
  uintptr_t code;  // an address inside the module
  std::string id;
};

std::string id_in_notes(const char* at, size_t size) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t name = padded(note.n_namesz);
    const size_t whole = sizeof note + name + padded(note.n_descsz);
    if (whole > size) return "";
    const char* text = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(text, note.n_namesz) == std::string_view(ELF_NOTE_GNU, note.n_namesz)) {
      return {text + name, note.n_descsz};
    }
    at += whole;
    size -= whole;
  }
  return "";
}

int visit_module(dl_phdr_info* module, size_t, void* found) {
  auto* wanted = static_cast<BuildId*>(found);
  bool inside = false;
  std::string id;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      inside = inside || (wanted->code >= begin && wanted->code < begin + part.p_memsz);
    } else if (part.p_type == PT_NOTE && id.empty()) {
      id = id_in_notes(reinterpret_cast<const char*>(begin), part.p_memsz);
    }
  }
  if (inside) wanted->id = std::move(id);
  return inside ? 1 : 0;
}

// Of the executable or library that this code stands in; empty when it was linked without one.
std::string build_id() {
  BuildId found{reinterpret_cast<uintptr_t>(&visit_module), ""};
  ::dl_iterate_phdr(visit_module, &found);
  return found.id;
}

std::string digest_of(const LlamaConfig& config, const MatrixForm& form, std::string_view build) {
  Hasher hasher;
  hasher.update(build).update("\n").update(runtime::cpu_level());
  for (int64_t size :
       {config.blocks, config.width, config.feed_forward, config.heads, config.kv_heads,
        config.head_size, config.vocabulary, config.context, int64_t{config.tied_head},
        static_cast<int64_t>(form.dtype), static_cast<int64_t>(form.activations)}) {
    hasher.update_value(size);
  }
  hasher.update_value(config.rope_base).update_value(config.norm_eps);
  for (const auto& [name, encoding] : form.encodings) {
    hasher.update("\n").update(name).update(" ").update(encoding);
  }
  return to_hex(hasher.finish());
}

std::shared_ptr<const program::Artifact> open_or_null(const std::string& path) {
  try {
    if (::access(path.c_str(), R_OK) == 0) return program::Artifact::open(path);
  } catch (const Error&) {
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const program::Artifact> cached_programs(
    const LlamaConfig& config, const MatrixForm& form,
    const std::function<void(const std::string& path)>& save) {
  const std::string build = build_id();
  const std::string folder = compiler::own_cache_folder();
  if (build.empty() || folder.empty()) return nullptr;
  const std::string path = fmt::format("{}/llama-{}.tenon", folder, digest_of(config, form, build));
  if (auto artifact = open_or_null(path)) return artifact;
  try {
    save(path);
  } catch (const IoError&) {
    return nullptr;
  }
  return open_or_null(path);
}

}  // namespace tenon::pipelines
