#include "tenon/quant/block_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tenon/base/error.h"

namespace tenon::quant {
namespace {

std::vector<std::byte> encoded(const BlockFormat& format, const std::vector<float>& x) {
  std::vector<std::byte> out(static_cast<size_t>(format.bytes_of(static_cast<int64_t>(x.size()))));
  encode(format, x, out);
  return out;
}

std::vector<float> decoded(const BlockFormat& format, const std::vector<std::byte>& bytes,
                           size_t n) {
  std::vector<float> out(n);
  decode(format, bytes, out);
  return out;
}

TEST(BlockFormat, IsFoundByNameTypeAndEncoding) {
  for (const BlockFormat& format : block_formats()) {
    EXPECT_EQ(find_block_format(format.name), &format);
    EXPECT_EQ(find_gguf_type(format.gguf_type), &format);
    EXPECT_EQ(&block_format(format.encoding), &format);
    EXPECT_EQ(format.bytes_of(0), 0);
    EXPECT_EQ(format.bytes_of(3 * format.block_elements), 3 * format.block_bytes);
  }
  EXPECT_EQ(find_block_format("q4_k"), find_block_format("Q4_K"));
  EXPECT_EQ(find_block_format("Q4"), nullptr);
  EXPECT_EQ(find_gguf_type(4), nullptr);
}

TEST(BlockFormat, RefusesPartialBlocksAndWrongSizes) {
  const BlockFormat& q4_0 = block_format(Encoding::kQ4_0);
  try {
    q4_0.bytes_of(33);
    ADD_FAILURE();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "Q4_0: 33 elements are not whole blocks of 32 [encoding_block]");
  }
  EXPECT_THROW(q4_0.bytes_of(-32), ShapeError);
  EXPECT_THROW(block_format(Encoding::kF32).bytes_of(std::numeric_limits<int64_t>::max()),
               ValueError);
  std::vector<float> x(32);
  std::vector<std::byte> bytes(17);
  EXPECT_THROW(encode(q4_0, x, bytes), ValueError);
  EXPECT_THROW(decode(q4_0, bytes, x), ValueError);
}

TEST(BlockFormat, RefusesWhatABlockCannotHold) {
  for (const BlockFormat& format : block_formats()) {
    std::vector<float> x(static_cast<size_t>(2 * format.block_elements), 1.0f);
    for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      x.back() = bad;
      if (format.is_quantized()) {
        EXPECT_THROW(encoded(format, x), ValueError) << format.name;
      } else {
        float back = decoded(format, encoded(format, x), x.size()).back();
        EXPECT_TRUE(std::isnan(bad) ? std::isnan(back) : back == bad) << format.name;
      }
    }
    x.back() = 3e38f;
    if (format.is_quantized()) {
      EXPECT_THROW(encoded(format, x), ValueError) << format.name;
    }
  }
}

// Any finite input that is not refused comes back finite, and near where the scale allows it.
TEST(BlockFormat, RoundTripsAtEveryMagnitude) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const BlockFormat& format : block_formats()) {
    for (int exponent = -149; exponent <= 13; ++exponent) {
      std::vector<float> x(512);
      float largest = 0.0f;
      for (float& v : x) {
        v = std::ldexp(static_cast<float>(random() % 2001) / 1000.0f - 1.0f, exponent);
        largest = std::max(largest, std::fabs(v));
      }
      std::vector<float> back = decoded(format, encoded(format, x), x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isfinite(back[i])) << format.name << " 2^" << exponent;
        if (exponent >= -10) {
          ASSERT_NEAR(back[i], x[i], largest * 0.16f) << format.name << " 2^" << exponent;
        }
      }
    }
  }
}

TEST(BlockFormat, AnyBytesDecode) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const BlockFormat& format : block_formats()) {
    const size_t blocks = 64;
    // At an odd address: no field is aligned.
    std::vector<std::byte> bytes(1 + blocks * static_cast<size_t>(format.block_bytes));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    std::vector<float> out(blocks * static_cast<size_t>(format.block_elements));
    decode(format, std::span(bytes).subspan(1), out);
    std::vector<float> again(out.size());
    for (size_t b = 0; b < blocks; ++b) {  // block by block gives the same
      decode(format,
             std::span(bytes).subspan(1 + b * static_cast<size_t>(format.block_bytes),
                                      static_cast<size_t>(format.block_bytes)),
             std::span(again).subspan(b * static_cast<size_t>(format.block_elements),
                                      static_cast<size_t>(format.block_elements)));
    }
    EXPECT_EQ(std::memcmp(out.data(), again.data(), out.size() * 4), 0) << format.name;
  }
}

}  // namespace
}  // namespace tenon::quant
