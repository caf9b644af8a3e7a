// Half-precision storage types. Arithmetic is done in float; conversion rounds to nearest even,
// keeps NaN a NaN, and keeps subnormals.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon {

// IEEE binary16.
uint16_t f16_from_float(float value);
float f16_to_float(uint16_t bits);
// binary64 → binary16 with one rounding.
uint16_t f16_from_double(double value);

inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t bf16_from_float(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((u >> 16) | 0x40u);  // quiet NaN
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
// binary64 → bfloat16 with one rounding.
uint16_t bf16_from_double(double value);

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(f16_from_float(value)) {}
  explicit operator float() const { return f16_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(bf16_from_float(value)) {}
  explicit operator float() const { return bf16_to_float(bits); }
};

}  // namespace tenon
