#include "tenon/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon {
namespace {

using Words8 = std::array<uint32_t, 8>;
using Words16 = std::array<uint32_t, 16>;

constexpr size_t kBlockBytes = 64;
constexpr size_t kBlocksOfChunk = 16;
constexpr uint32_t kChunkStart = 1;
constexpr uint32_t kChunkEnd = 2;
constexpr uint32_t kParent = 4;
constexpr uint32_t kRoot = 8;

constexpr Words8 kIv = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<uint8_t, 16> kPermutation = {2, 6,  3,  10, 7, 0,  4,  13,
                                                  1, 11, 12, 5,  9, 14, 15, 8};
constexpr int kRounds = 7;

// Which message word each round takes at each place.
constexpr auto kSchedule = [] {
  std::array<std::array<uint8_t, 16>, kRounds> out{};
  for (uint8_t i = 0; i < 16; ++i) out[0][i] = i;
  for (int r = 1; r < kRounds; ++r) {
    for (int i = 0; i < 16; ++i) out[r][i] = out[r - 1][kPermutation[i]];
  }
  return out;
}();

inline void mix(Words16& v, int a, int b, int c, int d, uint32_t x, uint32_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

// The compression function cut to its first half, which is all that a 32-byte digest uses.
Words8 compress(const Words8& cv, const Words16& m, uint64_t counter, uint32_t size,
                uint32_t flags) {
  Words16 v = {cv[0],
               cv[1],
               cv[2],
               cv[3],
               cv[4],
               cv[5],
               cv[6],
               cv[7],
               kIv[0],
               kIv[1],
               kIv[2],
               kIv[3],
               static_cast<uint32_t>(counter),
               static_cast<uint32_t>(counter >> 32),
               size,
               flags};
  for (const auto& s : kSchedule) {
    mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
  }
  Words8 out;
  for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
  return out;
}

Words16 load_words(const uint8_t* bytes) {
  Words16 out;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out.data(), bytes, kBlockBytes);
  } else {
    for (int i = 0; i < 16; ++i, bytes += 4) {
      out[i] = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
    }
  }
  return out;
}

Words8 parent(const Words8& left, const Words8& right, uint32_t flags) {
  Words16 block;
  std::copy(left.begin(), left.end(), block.begin());
  std::copy(right.begin(), right.end(), block.begin() + 8);
  return compress(kIv, block, 0, kBlockBytes, kParent | flags);
}

}  // namespace

Hasher::Hasher() { chunk_.cv = kIv; }

// A chunk at place n completes as many subtrees as n + 1 has trailing zero bits.
void Hasher::push_chunk(Words8 cv) {
  ++chunks_;
  for (uint64_t n = chunks_; (n & 1) == 0; n >>= 1) cv = parent(stack_[--depth_], cv, 0);
  stack_[depth_++] = cv;
}

Hasher& Hasher::update(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  while (left > 0) {
    // A full block waits for the next byte: whether it is the last of its chunk, and the chunk the
    // last of all, changes its flags.
    if (chunk_.block_size == kBlockBytes) {
      uint32_t flags = chunk_.blocks == 0 ? kChunkStart : 0;
      bool last = chunk_.blocks == kBlocksOfChunk - 1;
      Words8 cv = compress(chunk_.cv, load_words(chunk_.block.data()), chunk_.counter, kBlockBytes,
                           flags | (last ? kChunkEnd : 0));
      if (last) {
        push_chunk(cv);
        chunk_.cv = kIv;
        chunk_.counter = chunks_;
        chunk_.blocks = 0;
      } else {
        chunk_.cv = cv;
        ++chunk_.blocks;
      }
      chunk_.block_size = 0;
    }
    size_t take = std::min(left, kBlockBytes - chunk_.block_size);
    std::memcpy(chunk_.block.data() + chunk_.block_size, data, take);
    chunk_.block_size = static_cast<uint8_t>(chunk_.block_size + take);
    data += take;
    left -= take;
  }
  return *this;
}

Hasher& Hasher::update(std::string_view text) {
  return update(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

Digest Hasher::finish() const {
  std::array<uint8_t, kBlockBytes> block{};
  std::copy_n(chunk_.block.begin(), chunk_.block_size, block.begin());
  uint32_t flags = kChunkEnd | (chunk_.blocks == 0 ? kChunkStart : 0);
  Words8 cv = compress(chunk_.cv, load_words(block.data()), chunk_.counter, chunk_.block_size,
                       flags | (depth_ == 0 ? kRoot : 0));
  for (int i = depth_; i-- > 0;) cv = parent(stack_[i], cv, i == 0 ? kRoot : 0);
  Digest out;
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(cv[i / 4] >> (8 * (i % 4)));
  return out;
}

Digest hash_bytes(std::span<const std::byte> bytes) { return Hasher().update(bytes).finish(); }
Digest hash_text(std::string_view text) { return Hasher().update(text).finish(); }

std::string to_hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace tenon
