#include "tenon/base/half.h"

#include <cmath>

namespace tenon {
namespace {

// Rounds `mantissa` (with its implicit bit) right by `shift` bits, to nearest even.
uint64_t round_shift(uint64_t mantissa, int shift) {
  if (shift > 63) return 0;
  uint64_t kept = mantissa >> shift;
  uint64_t rest = mantissa & ((uint64_t{1} << shift) - 1);
  uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  return kept;
}

// One rounding from a binary format with `mantissa_bits` and exponent bias `bias` to binary16.
uint16_t to_f16(bool negative, int biased, int bias, int max_biased, uint64_t mantissa,
                int mantissa_bits) {
  auto sign = static_cast<uint16_t>(negative ? 0x8000 : 0);
  if (biased == max_biased) {
    if (mantissa == 0) return sign | 0x7c00;
    auto payload = static_cast<uint16_t>(mantissa >> (mantissa_bits - 10));
    return static_cast<uint16_t>(sign | 0x7e00 | payload);
  }
  if (biased == 0) return sign;  // f32 and f64 subnormals are far below half of 2^-24
  int exponent = biased - bias + 15;
  uint64_t full = mantissa | (uint64_t{1} << mantissa_bits);
  if (exponent >= 31) return sign | 0x7c00;
  if (exponent <= 0) {
    return static_cast<uint16_t>(sign | round_shift(full, mantissa_bits - 10 + 1 - exponent));
  }
  uint64_t rounded = round_shift(full, mantissa_bits - 10);  // in [2^10, 2^11]
  return static_cast<uint16_t>(sign + (static_cast<uint64_t>(exponent - 1) << 10) + rounded);
}

}  // namespace

uint16_t f16_from_float(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  return to_f16(u >> 31, static_cast<int>((u >> 23) & 0xff), 127, 255, u & 0x7fffff, 23);
}

uint16_t f16_from_double(double value) {
  uint64_t u = std::bit_cast<uint64_t>(value);
  return to_f16(u >> 63, static_cast<int>((u >> 52) & 0x7ff), 1023, 2047, u & 0xfffffffffffffull,
                52);
}

uint16_t bf16_from_double(double value) {
  // The first rounding is to odd, so that the second decides as if it saw every bit.
  float nearest = static_cast<float>(value);
  if (nearest != nearest || static_cast<double>(nearest) == value) return bf16_from_float(nearest);
  uint32_t u = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --u;
  return bf16_from_float(std::bit_cast<float>(u | 1u));
}

float f16_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace tenon
