// The formats with blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0. One scale a block, in the _1
// formats also a minimum; the low nibbles are the first 16 elements, the high ones the last 16; the
// fifth bits stand in one 32-bit word.
#include <algorithm>

#include "tenon/quant/rows.h"

namespace tenon::quant {
namespace {

constexpr int kBlock = 32;
constexpr int kHalf = 16;

void nibbles(const std::byte* qs, uint8_t* out) {
  const auto* q = reinterpret_cast<const uint8_t*>(qs);
  for (int j = 0; j < kHalf; ++j) out[j] = q[j] & 15;
  for (int j = 0; j < kHalf; ++j) out[j + kHalf] = q[j] >> 4;
}

void add_fifth_bits(const std::byte* qh, uint8_t* codes) {
  uint32_t bits;
  std::memcpy(&bits, qh, 4);
  for (int j = 0; j < kBlock; ++j) codes[j] |= static_cast<uint8_t>(((bits >> j) & 1) << 4);
}

void store_nibbles(const uint8_t* codes, std::byte* qs) {
  for (int j = 0; j < kHalf; ++j) {
    qs[j] = static_cast<std::byte>((codes[j] & 15) | (codes[j + kHalf] & 15) << 4);
  }
}

void store_fifth_bits(const uint8_t* codes, std::byte* qh) {
  uint32_t bits = 0;
  for (int j = 0; j < kBlock; ++j) bits |= static_cast<uint32_t>(codes[j] >> 4) << j;
  std::memcpy(qh, &bits, 4);
}

// y = (q - offset) * d.
void scale_codes(const uint8_t* codes, int offset, float d, float* out) {
  for (int j = 0; j < kBlock; ++j) out[j] = static_cast<float>(codes[j] - offset) * d;
}

// y = q * d + m, rounded twice.
void scale_shift_codes(const uint8_t* codes, float d, float m, float* out) {
  for (int j = 0; j < kBlock; ++j) out[j] = static_cast<float>(codes[j]) * d + m;
}

// Codes of a format whose extreme element gets code 0: levels/2 is code `half`.
void signed_codes(const float* x, float d, float half, int highest, uint8_t* codes) {
  float inverse = inverse_or_zero(d);
  for (int j = 0; j < kBlock; ++j) {
    int q = static_cast<int>(x[j] * inverse + (half + 0.5f));
    codes[j] = static_cast<uint8_t>(std::min(q, highest));
  }
}

struct Range {
  float min;
  float max;
};

Range range_of(const float* x) {
  auto [low, high] = std::minmax_element(x, x + kBlock);
  return {*low, *high};
}

void ranged_codes(const float* x, float d, float min, int highest, uint8_t* codes) {
  float inverse = inverse_or_zero(d);
  for (int j = 0; j < kBlock; ++j) {
    int q = static_cast<int>((x[j] - min) * inverse + 0.5f);
    codes[j] = static_cast<uint8_t>(std::min(q, highest));
  }
}

}  // namespace

void decode_q4_0(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += 18, out += kBlock) {
    nibbles(in + 2, codes);
    scale_codes(codes, 8, load_f16(in), out);
  }
}

void decode_q4_1(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += 20, out += kBlock) {
    nibbles(in + 4, codes);
    scale_shift_codes(codes, load_f16(in), load_f16(in + 2), out);
  }
}

void decode_q5_0(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += 22, out += kBlock) {
    nibbles(in + 6, codes);
    add_fifth_bits(in + 2, codes);
    scale_codes(codes, 16, load_f16(in), out);
  }
}

void decode_q5_1(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += 24, out += kBlock) {
    nibbles(in + 8, codes);
    add_fifth_bits(in + 4, codes);
    scale_shift_codes(codes, load_f16(in), load_f16(in + 2), out);
  }
}

void decode_q8_0(const std::byte* in, float* out, int64_t blocks) {
  for (; blocks > 0; --blocks, in += 34, out += kBlock) {
    float d = load_f16(in);
    const auto* q = reinterpret_cast<const int8_t*>(in + 2);
    for (int j = 0; j < kBlock; ++j) out[j] = static_cast<float>(q[j]) * d;
  }
}

void encode_q4_0(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 18) {
    float d = signed_extreme(in, kBlock) / -8.0f;
    store_f16(out, d);
    signed_codes(in, d, 8.0f, 15, codes);
    store_nibbles(codes, out + 2);
  }
}

void encode_q4_1(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 20) {
    auto [min, max] = range_of(in);
    float d = (max - min) / 15.0f;
    store_f16(out, d);
    store_f16(out + 2, min);
    ranged_codes(in, d, min, 15, codes);
    store_nibbles(codes, out + 4);
  }
}

void encode_q5_0(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 22) {
    float d = signed_extreme(in, kBlock) / -16.0f;
    store_f16(out, d);
    signed_codes(in, d, 16.0f, 31, codes);
    store_fifth_bits(codes, out + 2);
    store_nibbles(codes, out + 6);
  }
}

void encode_q5_1(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 24) {
    auto [min, max] = range_of(in);
    float d = (max - min) / 31.0f;
    store_f16(out, d);
    store_f16(out + 2, min);
    ranged_codes(in, d, min, 31, codes);
    store_fifth_bits(codes, out + 4);
    store_nibbles(codes, out + 8);
  }
}

void encode_q8_0(const float* in, std::byte* out, int64_t blocks) {
  for (; blocks > 0; --blocks, in += kBlock, out += 34) {
    float d = std::fabs(signed_extreme(in, kBlock)) / 127.0f;
    store_f16(out, d);
    float inverse = inverse_or_zero(d);
    for (int j = 0; j < kBlock; ++j) {
      out[2 + j] = static_cast<std::byte>(static_cast<int8_t>(std::round(in[j] * inverse)));
    }
  }
}

}  // namespace tenon::quant
