// Where the built-in block formats keep their elements, written once for numbers and for code:
//
//   value = scale · (code - zero) + offset
//
// with unsigned codes of at most eight bits, and a scale and an offset for each group of elements.
// In f32 both the scale and the product are exact for every block, and so is the decoder's value up
// to the one rounding of the sum.
//
// A Source reads one block. It has types Index (a byte or element number), Word (32 bits) and Real
// (f32), which have the operators used here with each other and with integers, and
//   Word byte(Index), Word word(Index)   zero-extended; four bytes, little-endian, at any alignment
//   Real half(Index)                     an f16
//   Word to_word(Index)
//   Real to_real(Word)                   of a signed word, exact
#pragma once

#include <cstring>

#include "tenon/quant/rows.h"

namespace tenon::quant {

struct CodeLayout {
  int64_t group;     // elements that share scale and offset
  int code_bits;     // 4, 5, 6 or 8
  int32_t zero;      // the code of 0, where there is no offset
  bool has_offset;   // else the offset is 0
  bool half_scales;  // scales and offsets fit f16
};

// Null for F32, F16, BF16 and registered formats.
inline const CodeLayout* code_layout(Encoding encoding) {
  static constexpr CodeLayout kQ4_0 = {32, 4, 8, false, true};
  static constexpr CodeLayout kQ4_1 = {32, 4, 0, true, true};
  static constexpr CodeLayout kQ5_0 = {32, 5, 16, false, true};
  static constexpr CodeLayout kQ5_1 = {32, 5, 0, true, true};
  static constexpr CodeLayout kQ8_0 = {32, 8, 128, false, true};
  static constexpr CodeLayout kQ4_K = {32, 4, 0, true, false};
  static constexpr CodeLayout kQ5_K = {32, 5, 0, true, false};
  static constexpr CodeLayout kQ6_K = {16, 6, 32, false, false};
  switch (encoding) {
    case Encoding::kQ4_0: return &kQ4_0;
    case Encoding::kQ4_1: return &kQ4_1;
    case Encoding::kQ5_0: return &kQ5_0;
    case Encoding::kQ5_1: return &kQ5_1;
    case Encoding::kQ8_0: return &kQ8_0;
    case Encoding::kQ4_K: return &kQ4_K;
    case Encoding::kQ5_K: return &kQ5_K;
    case Encoding::kQ6_K: return &kQ6_K;
    default: return nullptr;
  }
}

// The codes of one block. Count is 1 or 4: the element's code in the low byte, or, for an element
// number that 4 divides, four codes of which the first is in the low byte.
template <class Source, int Count>
class Codes {
 public:
  using Index = typename Source::Index;
  using Word = typename Source::Word;

  explicit Codes(const Source& source) : s_(source) {}

  Word of(Encoding encoding, Index j) const {
    switch (encoding) {
      case Encoding::kQ4_0: return half_block_nibble(2, j);
      case Encoding::kQ4_1: return half_block_nibble(4, j);
      case Encoding::kQ5_0: return half_block_nibble(6, j) | fifth_bits(2, j);
      case Encoding::kQ5_1: return half_block_nibble(8, j) | fifth_bits(4, j);
      case Encoding::kQ8_0: return bytes(j + 2) ^ every(128);
      case Encoding::kQ4_K: return plane_nibble(16, j);
      case Encoding::kQ5_K:
        return plane_nibble(48, j) | ((bytes(j % 32 + 16) >> s_.to_word(j / 32)) & every(1)) << 4;
      default: return six_bits(j);
    }
  }

 private:
  static constexpr uint32_t every(uint32_t byte) { return Count == 4 ? byte * 0x01010101u : byte; }
  Word bytes(Index at) const { return Count == 4 ? s_.word(at) : s_.byte(at); }

  // Low nibbles are the first half of a block of 32, high ones the second.
  Word half_block_nibble(int64_t from, Index j) const {
    return (bytes(j % 16 + from) >> (s_.to_word(j / 16) << 2)) & every(15);
  }

  Word fifth_bits(int64_t from, Index j) const {
    const Word bits = s_.word(s_.at(from)) >> s_.to_word(j);
    if (Count == 1) return (bits & 1) << 4;
    return (bits & 1) << 4 | (bits & 2) << 11 | (bits & 4) << 18 | (bits & 8) << 25;
  }

  // 64 elements in 32 bytes: low nibbles first.
  Word plane_nibble(int64_t from, Index j) const {
    const Word shift = (s_.to_word(j / 32) & 1) << 2;
    return (bytes(j / 64 * 32 + j % 32 + from) >> shift) & every(15);
  }

  Word six_bits(Index j) const {
    const Word quarter = s_.to_word(j / 32 % 4);
    const Word low = bytes(j / 128 * 64 + j % 64) >> ((quarter >> 1) << 2);
    const Word high = bytes(j / 128 * 32 + j % 32 + 128) >> (quarter << 1);
    return (low & every(15)) | (high & every(3)) << 4;
  }

  const Source& s_;
};

template <class Source>
class Scales {
 public:
  using Index = typename Source::Index;
  using Word = typename Source::Word;
  using Real = typename Source::Real;

  explicit Scales(const Source& source) : s_(source) {}

  Real scale(Encoding encoding, Index group) const {
    switch (encoding) {
      case Encoding::kQ4_K:
      case Encoding::kQ5_K: return s_.half(s_.at(0)) * s_.to_real(packed_scale(group));
      case Encoding::kQ6_K:
        return s_.half(s_.at(208)) * s_.to_real((s_.byte(group + 192) ^ 128) - 128);
      default: return s_.half(s_.at(0));
    }
  }

  // Of a format with offsets.
  Real offset(Encoding encoding, Index group) const {
    if (encoding == Encoding::kQ4_1 || encoding == Encoding::kQ5_1) return s_.half(s_.at(2));
    return -(s_.half(s_.at(2)) * s_.to_real(packed_min(group)));
  }

 private:
  // The 6-bit pairs of a K format: four plain scales, four plain minimums, whose top two bits hold
  // the upper bits of the other four pairs. Both readings lie inside the block.
  Word packed_scale(Index j) const {
    return either(j, s_.byte(j + 4) & 63, (s_.byte(j + 8) & 15) | (s_.byte(j) >> 6) << 4);
  }
  Word packed_min(Index j) const {
    return either(j, s_.byte(j + 8) & 63, s_.byte(j + 8) >> 4 | (s_.byte(j + 4) >> 6) << 4);
  }
  Word either(Index j, Word low, Word high) const {
    const Word upper = s_.to_word(j / 4) * 63;
    return (low & (upper ^ 63)) | (high & upper);
  }

  const Source& s_;
};

// A block in memory as a Source.
struct BlockBytes {
  using Index = int64_t;
  using Word = uint32_t;
  using Real = float;

  const std::byte* block;

  int64_t at(int64_t offset) const { return offset; }
  uint32_t byte(int64_t at) const { return static_cast<uint8_t>(block[at]); }
  uint32_t word(int64_t at) const {
    uint32_t bits;
    std::memcpy(&bits, block + at, 4);
    return bits;
  }
  float half(int64_t at) const { return load_f16(block + at); }
  uint32_t to_word(int64_t index) const { return static_cast<uint32_t>(index); }
  float to_real(uint32_t word) const { return static_cast<float>(static_cast<int32_t>(word)); }
};

}  // namespace tenon::quant
