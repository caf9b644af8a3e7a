#include "tenon/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tenon {
namespace {

// binary16 by its definition, in double.
double f16_meaning(uint16_t bits) {
  int exponent = (bits >> 10) & 0x1f;
  int mantissa = bits & 0x3ff;
  double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryF16ConvertsAndComesBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    float value = f16_to_float(bits);
    double meaning = f16_meaning(bits);
    if (std::isnan(meaning)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_EQ(f16_from_float(value), bits | 0x200) << i;  // quiet, payload and sign kept
      ASSERT_EQ(f16_from_double(value), bits | 0x200) << i;
      continue;
    }
    ASSERT_EQ(value, meaning) << i;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
    ASSERT_EQ(f16_from_float(value), bits) << i;
    ASSERT_EQ(f16_from_double(value), bits) << i;
  }
}

TEST(Half, F16RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint16_t low = 0; low < 0x7c00; ++low) {
    auto high = static_cast<uint16_t>(low + 1);
    double a = f16_meaning(low);
    double b = high == 0x7c00 ? 65536.0 : f16_meaning(high);
    double middle = (a + b) / 2;
    uint16_t even = low & 1 ? high : low;
    auto middle_f = static_cast<float>(middle);  // exact
    ASSERT_EQ(f16_from_float(middle_f), even) << low;
    ASSERT_EQ(f16_from_double(middle), even) << low;
    ASSERT_EQ(f16_from_float(std::nextafter(middle_f, 0.0f)), low) << low;
    ASSERT_EQ(f16_from_float(std::nextafter(middle_f, HUGE_VALF)), high) << low;
    ASSERT_EQ(f16_from_double(std::nextafter(middle, 0.0)), low) << low;
    ASSERT_EQ(f16_from_double(-std::nextafter(middle, HUGE_VAL)), high | 0x8000) << low;
  }
}

TEST(Half, F16Extremes) {
  EXPECT_EQ(f16_from_float(65519.996f), 0x7bff);
  EXPECT_EQ(f16_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_float(1e30f), 0x7c00);
  EXPECT_EQ(f16_from_float(-HUGE_VALF), 0xfc00);
  EXPECT_EQ(f16_from_float(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f16_from_float(-0.0f), 0x8000);
  EXPECT_EQ(f16_from_double(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(f16_from_double(std::numeric_limits<double>::max()), 0x7c00);
}

TEST(Half, EveryBF16ConvertsAndComesBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    float value = bf16_to_float(bits);
    if (std::isnan(value)) {
      ASSERT_EQ(bf16_from_float(value), bits | 0x40) << i;
      ASSERT_EQ(bf16_from_double(static_cast<double>(value)), bits | 0x40) << i;
      continue;
    }
    ASSERT_EQ(bf16_from_float(value), bits) << i;
    ASSERT_EQ(bf16_from_double(value), bits) << i;
  }
}

TEST(Half, BF16RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint16_t low = 0; low < 0x7f80; ++low) {
    auto high = static_cast<uint16_t>(low + 1);
    double a = bf16_to_float(low);
    double b = high == 0x7f80 ? 0x1p128 : static_cast<double>(bf16_to_float(high));
    double middle = (a + b) / 2;
    uint16_t even = low & 1 ? high : low;
    ASSERT_EQ(bf16_from_float(static_cast<float>(middle)), even) << low;
    ASSERT_EQ(bf16_from_double(middle), even) << low;
    // A double just past the middle would be taken for a tie after a rounding to float.
    ASSERT_EQ(bf16_from_double(std::nextafter(middle, 0.0)), low) << low;
    ASSERT_EQ(bf16_from_double(std::nextafter(middle, HUGE_VAL)), high) << low;
    ASSERT_EQ(bf16_from_double(-std::nextafter(middle, HUGE_VAL)), high | 0x8000) << low;
  }
  EXPECT_EQ(bf16_from_double(std::numeric_limits<double>::max()), 0x7f80);
  EXPECT_EQ(bf16_from_double(std::numeric_limits<double>::denorm_min()), 0);
}

TEST(Half, WrapperTypes) {
  EXPECT_EQ(static_cast<float>(Half(1.5f)), 1.5f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.5f)), 1.5f);
  EXPECT_EQ(Half().bits, 0);
}

}  // namespace
}  // namespace tenon
