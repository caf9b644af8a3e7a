// Any bytes are read as an artifact or refused with a FormatError. Digests are made right first, so
// that what stands behind them is reached; the machine code of a file is never run.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "artifact_generated.h"
#include "tenon/base/error.h"
#include "tenon/ir/text.h"
#include "tenon/program/artifact_header.h"
#include "tenon/program/program.h"

namespace {

using namespace tenon;

// Writes the digests of sections into the manifest, where it is one.
void repair_sections(std::vector<std::byte>& file, std::span<std::byte> manifest) {
  flatbuffers::Verifier verifier(reinterpret_cast<uint8_t*>(manifest.data()), manifest.size());
  if (manifest.size() < 8 || !verifier.VerifyBuffer<program::fb::Manifest>(nullptr)) return;
  const auto* table = flatbuffers::GetRoot<program::fb::Manifest>(manifest.data());
  if (table->sections() == nullptr) return;
  for (const program::fb::Section* section : *table->sections()) {
    if (section->digest() == nullptr || section->digest()->size() != 32) continue;
    if (section->offset() > file.size() || section->size() > file.size() - section->offset()) {
      continue;
    }
    const Digest digest = hash_bytes(std::span(file).subspan(section->offset(), section->size()));
    std::memcpy(const_cast<uint8_t*>(section->digest()->data()), digest.data(), digest.size());
  }
}

void repair(std::vector<std::byte>& file) {
  if (file.size() <= program::kHeaderBytes) return;
  uint64_t offset = 0;
  std::memcpy(&offset, file.data() + 24, sizeof(offset));
  if (offset < program::kHeaderBytes || offset > file.size()) return;
  const std::span manifest = std::span(file).subspan(offset);
  repair_sections(file, manifest);
  const auto header =
      program::write_header({file.size(), offset, manifest.size(), hash_bytes(manifest)});
  std::memcpy(file.data(), header.data(), header.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int fd = memfd_create("artifact", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  repair(file);
  if (ftruncate(fd, 0) != 0) return 0;
  if (pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) return 0;
  try {
    const auto artifact = program::Artifact::open(path);
    artifact->check_all();
    for (size_t i = 0; i < artifact->programs().size(); ++i) {
      ir::print(artifact->graph(i));
      artifact->eval_graphs(i);
      artifact->module(i);
      program::Program::load(
          artifact, {.program = artifact->programs()[i].signature.function, .data_only = true});
    }
  } catch (const FormatError&) {
  } catch (const KeyError&) {  // two programs of one name
  }
  return 0;
}
