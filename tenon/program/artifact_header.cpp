#include "tenon/program/artifact_header.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tenon/base/error.h"
#include "tenon/program/artifact.h"

namespace tenon::program {
namespace {

constexpr std::array<unsigned char, 8> kMagic = {0x89, 'T', 'E', 'N', 'O', 'N', '\r', '\n'};
constexpr size_t kManifestDigest = 64;
constexpr size_t kHeaderDigest = 96;

template <class T>
void put(std::array<std::byte, kHeaderBytes>& bytes, size_t at, T value) {
  for (size_t i = 0; i < sizeof value; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

uint64_t get(std::span<const std::byte> bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

}  // namespace

std::array<std::byte, kHeaderBytes> write_header(const Header& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put<uint32_t>(bytes, 8, kArtifactFormat);
  put<uint32_t>(bytes, 12, kHeaderBytes);
  put<uint64_t>(bytes, 16, header.file_bytes);
  put<uint64_t>(bytes, 24, header.manifest_offset);
  put<uint64_t>(bytes, 32, header.manifest_bytes);
  std::memcpy(bytes.data() + kManifestDigest, header.manifest_digest.data(), 32);
  Digest digest = hash_bytes(std::span(bytes).first(kHeaderDigest));
  std::memcpy(bytes.data() + kHeaderDigest, digest.data(), digest.size());
  return bytes;
}

bool is_artifact(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(path + ": cannot open");
  std::array<char, kMagic.size()> begin{};
  file.read(begin.data(), begin.size());
  return file.gcount() == static_cast<std::streamsize>(begin.size()) &&
         std::memcmp(begin.data(), kMagic.data(), kMagic.size()) == 0;
}

Header read_header(const std::string& path, std::span<const std::byte> file) {
  auto fail = [&](const std::string& what, const char* label, const char* hint = "") {
    throw FormatError(path + ": " + what, {.label = label, .hint = hint});
  };
  size_t prefix = std::min(file.size(), kMagic.size());
  if (file.empty()) fail("the file is empty", "artifact_truncated");
  if (std::memcmp(file.data(), kMagic.data(), prefix) != 0) {
    fail("not a Tenon artifact", "artifact_magic");
  }
  if (file.size() < kHeaderBytes) {
    fail(fmt::format("{} bytes are too few for the header of an artifact (truncated)", file.size()),
         "artifact_truncated");
  }
  uint64_t format = get(file, 8, 4);
  if (format > kArtifactFormat) {
    fail(fmt::format("artifact format {} is newer than this run-time reads ({})", format,
                     kArtifactFormat),
         "artifact_version", "use a newer Tenon, or save the program again");
  }
  if (format == 0) fail("artifact format 0 does not exist (file damaged)", "artifact_version");
  Digest digest = hash_bytes(file.first(kHeaderDigest));
  if (std::memcmp(digest.data(), file.data() + kHeaderDigest, digest.size()) != 0) {
    fail("the header has another digest than it says (file damaged)", "artifact_digest");
  }
  Header header{get(file, 16, 8), get(file, 24, 8), get(file, 32, 8), {}};
  std::memcpy(header.manifest_digest.data(), file.data() + kManifestDigest, 32);
  if (file.size() != header.file_bytes) {
    fail(fmt::format("the file has {} bytes, its header says {} ({})", file.size(),
                     header.file_bytes,
                     file.size() < header.file_bytes ? "truncated" : "something was appended"),
         "artifact_truncated");
  }
  bool reserved = std::any_of(file.begin() + 40, file.begin() + kManifestDigest,
                              [](std::byte b) { return b != std::byte{0}; });
  bool placed = header.manifest_offset >= kHeaderBytes &&
                header.manifest_offset % kSectionAlignment == 0 &&
                header.manifest_offset <= file.size() &&
                file.size() - header.manifest_offset == header.manifest_bytes;
  if (reserved || !placed || get(file, 12, 4) != kHeaderBytes) {
    fail("the header is not well-formed", "artifact_header");
  }
  return header;
}

}  // namespace tenon::program
