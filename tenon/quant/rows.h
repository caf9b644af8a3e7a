// Declarations of the functions that the rows of block_formats.def name, and the loads and stores
// that they share: fields stand at any even address, so they go through memcpy.
#pragma once

#include <cmath>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/half.h"
#include "tenon/quant/block_format.h"

namespace tenon::quant {

#define BLOCK_FORMAT(name, gguf_type, elements, bytes, suffix) \
  void decode_##suffix(const std::byte* in, float* out, int64_t blocks); \
  void encode_##suffix(const float* in, std::byte* out, int64_t blocks);
#include "tenon/quant/block_formats.def"
#undef BLOCK_FORMAT

inline float load_f16(const std::byte* at) {
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return f16_to_float(bits);
}

[[noreturn]] inline void refuse_scale(float value) {
  throw ValueError(fmt::format("encode: a block's scale {} does not fit a half float", value),
                   {.label = "encode_range"});
}

// Stores a scale or minimum and gives back the value that a reader will see.
inline float store_f16(std::byte* at, float value) {
  uint16_t bits = f16_from_float(value);
  if ((bits & 0x7c00) == 0x7c00) refuse_scale(value);
  std::memcpy(at, &bits, 2);
  return f16_to_float(bits);
}

// Nearest integer, ties to even, clamped; NaN gives `low`. |low|, |high| < 2^22.
inline int round_clamped(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value > static_cast<float>(high)) return high;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: the sum's last bit is 1
  return static_cast<int>((value + kMagic) - kMagic);
}

// 1/d for a divisor that may be 0 or too small to invert.
inline float inverse_or_zero(float d) {
  float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// The element of largest magnitude with its sign; the first of equals; 0 for none.
inline float signed_extreme(const float* x, int n) {
  float magnitude = 0.0f;
  float extreme = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > magnitude) {
      magnitude = std::fabs(x[i]);
      extreme = x[i];
    }
  }
  return extreme;
}

}  // namespace tenon::quant
