// BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020): the digest of artifact sections, kernel
// images and cache keys. Portable code; Debian 12 carries no C library for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

using Digest = std::array<uint8_t, 32>;

// Incremental hashing.
class Hasher {
 public:
  Hasher();
  Hasher& update(std::span<const std::byte> bytes);
  Hasher& update(std::string_view text);
  // Hashes the object representation of a trivially copyable value.
  template <class T>
  Hasher& update_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return update(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  Digest finish() const;

 private:
  struct Chunk {
    std::array<uint32_t, 8> cv;
    uint64_t counter = 0;
    std::array<uint8_t, 64> block{};
    uint8_t block_size = 0;
    uint8_t blocks = 0;
  };
  void push_chunk(std::array<uint32_t, 8> cv);

  Chunk chunk_;
  std::array<std::array<uint32_t, 8>, 54> stack_;
  uint8_t depth_ = 0;
  uint64_t chunks_ = 0;
};

Digest hash_bytes(std::span<const std::byte> bytes);
Digest hash_text(std::string_view text);
// Lower-case hexadecimal.
std::string to_hex(const Digest& digest);

}  // namespace tenon
