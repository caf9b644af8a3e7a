// The first 128 bytes of an artifact.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tenon/base/hash.h"

namespace tenon::program {

inline constexpr uint32_t kArtifactFormat = 1;
inline constexpr size_t kHeaderBytes = 128;
inline constexpr size_t kSectionAlignment = 64;

struct Header {
  uint64_t file_bytes = 0;
  uint64_t manifest_offset = 0;
  uint64_t manifest_bytes = 0;
  Digest manifest_digest{};
};

std::array<std::byte, kHeaderBytes> write_header(const Header& header);
// Raises FormatError naming `path`: no artifact, newer format, truncated, damaged.
Header read_header(const std::string& path, std::span<const std::byte> file);

}  // namespace tenon::program
