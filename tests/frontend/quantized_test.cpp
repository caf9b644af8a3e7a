#include "tenon/frontend/quantized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <regex>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/random.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

const std::vector<std::string>& encodings() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& format : quant::block_formats()) names.emplace_back(format.name);
    return names;
  }();
  return all;
}

Tensor normal(uint64_t key, const Shape& shape) { return random::normal(random::key(key), shape); }

Tensor ramp32() {
  Floats values(32);
  for (int i = 0; i < 32; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i % 16 - 8) * 2);
  return tensor(values, {1, 32});
}

// The refusal's text without the place in this file.
std::string refused(const std::function<void()>& work) {
  return std::regex_replace(refusal(work), std::regex("\n  at [^\n]*"), "");
}

double relative_error(const Floats& got, const Floats& wanted) {
  double error = 0;
  double size = 0;
  EXPECT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(got[i] - wanted[i], 2);
    size += std::pow(wanted[i], 2);
  }
  return std::sqrt(error / size);
}

TEST(Quantized, BytesOfAKnownBlock) {
  const Bytes bytes = quantize("Q4_0", ramp32()).to_vector<uint8_t>();
  EXPECT_EQ(bytes, (Bytes{0x00, 0x40, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
                          0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}));
  EXPECT_EQ(dequantize("Q4_0", quantize("Q4_0", ramp32())).to_vector<float>(),
            ramp32().to_vector<float>());
}

TEST(Quantized, ProductWithAKnownBlock) {
  const Tensor w = quantize("Q4_0", ramp32());
  for (Activations mode : {Activations::kExact, Activations::kInt8}) {
    const auto product = [mode](const Tensor& x, const Tensor& q) {
      return qmatmul("Q4_0", x, q, mode);
    };
    const Tensor ones_row = ones({1, 32});
    const Tensor counted = reshape(arange(32, f32), {1, 32});
    EXPECT_NEAR(product(ones_row, w).item<float>(), -32, 1e-4);
    EXPECT_NEAR(compile(product)(ones_row, w).item<float>(), -32, 1e-4);
    // Half a step of the activations, times the weights' sum of magnitudes.
    const double tolerance = mode == Activations::kInt8 ? 31.0 / 127 / 2 * 256 : 1e-3;
    EXPECT_NEAR(product(counted, w).item<float>(), 864, tolerance);
    EXPECT_NEAR(compile(product)(counted, w).item<float>(), 864, tolerance);
  }
  const Tensor many = qmatmul("Q4_0", ones({2, 3, 32}), concatenate({w, w, w, w, w}, 0));
  EXPECT_EQ(many.dims(), (std::vector<int64_t>{2, 3, 5}));
}

// Compiled decoding gives the decoder's bits, wherever the rows come from.
TEST(Quantized, CompiledDecodingIsExact) {
  for (const std::string& encoding : encodings()) {
    SCOPED_TRACE(encoding);
    const Tensor q = quantize(encoding, normal(1, {7, 512}));
    const Tensor rows = tensor(std::vector<int32_t>{6, 0, -2, 3}, {2, 2});
    const Floats all = dequantize(encoding, q).to_vector<float>();
    const auto decode = compile([&](const Tensor& b) { return dequantize(encoding, b); });
    EXPECT_EQ(decode(q).to_vector<float>(), all);
    const auto lookup = compile(
        [&](const Tensor& b, const Tensor& at) { return dequantize(encoding, take(b, at)) * 2; });
    const Floats some = lookup(q, rows).to_vector<float>();
    const int64_t taken[] = {6, 0, 5, 3};
    for (size_t i = 0; i < some.size(); ++i) {
      const auto row = static_cast<size_t>(taken[i / 512]);
      ASSERT_EQ(some[i], 2 * all[row * 512 + i % 512]) << i;
    }
  }
}

// Weights that are bound once and one row; weights that are an argument and rows that leave a rest.
TEST(Quantized, CompiledProductsFollowTheReference) {
  for (const std::string& encoding : encodings()) {
    const Tensor w = quantize(encoding, normal(2, {75, 512}));
    for (Activations mode : {Activations::kExact, Activations::kInt8}) {
      SCOPED_TRACE(fmt::format("{} {}", encoding, mode == Activations::kInt8 ? "int8" : "exact"));
      const Tensor one = normal(3, {1, 512});
      const auto bound =
          compile([&](const Tensor& a) { return relu(qmatmul(encoding, a, w, mode) + 1); });
      Floats wanted = qmatmul(encoding, one, w, mode).to_vector<float>();
      for (float& value : wanted) value = std::max(value + 1, 0.0f);
      EXPECT_LT(relative_error(bound(one).to_vector<float>(), wanted), 2e-6);

      const Tensor many = normal(4, {25, 512});
      const auto free =
          compile([&](const Tensor& a, const Tensor& b) { return qmatmul(encoding, a, b, mode); });
      const Floats reference = qmatmul(encoding, many, w, mode).to_vector<float>();
      EXPECT_LT(relative_error(free(many, w).to_vector<float>(), reference), 2e-6);
      const Floats decoded = matmul(many, transpose(dequantize(encoding, w))).to_vector<float>();
      EXPECT_LT(relative_error(reference, decoded), mode == Activations::kInt8 ? 0.01 : 1e-6);
    }
  }
}

// Blocks of 4 elements: the first as a float, the others as eighths of it.
void decode_eighths(const std::byte* in, float* out, int64_t blocks) {
  for (; blocks > 0; --blocks, in += 7, out += 4) {
    std::memcpy(out, in, 4);
    for (int i = 0; i < 3; ++i) {
      out[i + 1] = out[0] * static_cast<float>(static_cast<int8_t>(in[4 + i])) / 8;
    }
  }
}
void encode_eighths(const float* in, std::byte* out, int64_t blocks) {
  for (; blocks > 0; --blocks, in += 4, out += 7) {
    std::memcpy(out, in, 4);
    for (int i = 0; i < 3; ++i) {
      out[4 + i] = static_cast<std::byte>(static_cast<int8_t>(std::rint(in[i + 1] / in[0] * 8)));
    }
  }
}

TEST(Quantized, RegisteredEncodings) {
  EXPECT_EQ(refused([] { quantize("EIGHTHS", ones({4})); }),
            "ValueError: quantize: unsupported encoding \"EIGHTHS\" [quantize_c1]\n  hint: one of "
            "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, or one that was "
            "registered");
  register_encoding({"eighths", 4, 7, decode_eighths, encode_eighths});
  const Tensor w = tensor({{2.0f, 0.5f, -1.0f, 4.0f}, {1.0f, 1.0f, 2.0f, 0.0f}});
  const Tensor q = quantize("Eighths", w);
  EXPECT_EQ(q.dims(), (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(dequantize("eighths", q).to_vector<float>(), w.to_vector<float>());
  const auto product = [](const Tensor& x, const Tensor& b) {
    return qmatmul("eighths", x, b, Activations::kInt8);
  };
  const Tensor x = tensor({{1.0f, 2.0f, 3.0f, 4.0f}});
  EXPECT_EQ(product(x, q).to_vector<float>(), (Floats{16, 9}));
  EXPECT_EQ(compile(product)(x, q).to_vector<float>(), (Floats{16, 9}));
  EXPECT_EQ(compile([&](const Tensor& a) { return product(a, q); })(x).to_vector<float>(),
            (Floats{16, 9}));
  EXPECT_EQ(refused([] {
              register_encoding({"Q4_0", 4, 7, decode_eighths, encode_eighths});
            }),
            "ValueError: register_format: Q4_0 is known already [encoding_register]");
  EXPECT_EQ(refused([] {
              register_encoding({"x", 4, 7, decode_eighths, nullptr});
            }),
            "ValueError: register_format: x lacks one of its two functions [encoding_register]");
}

TEST(Quantized, Refusals) {
  const Tensor w = quantize("Q4_0", ones({3, 64}));
  EXPECT_EQ(refused([] { quantize("Q4_0", ones({33})); }),
            "ShapeError: quantize: 33 elements are not whole blocks of 32 of Q4_0 [quantize_c3]");
  EXPECT_EQ(refused([] {
              quantize("Q4_K", ones({2, 256}, f64));
            }),
            "TypeError: quantize: expected f32 with at least 1 dimension, got f64[2, 256] "
            "[quantize_c2]");
  EXPECT_EQ(refused([&] { dequantize("Q6_K", w); }),
            "ShapeError: dequantize: 36 bytes are not whole blocks of 210 of Q6_K "
            "[dequantize_c3]");
  EXPECT_EQ(refused([&] {
              qmatmul("Q4_0", ones({2, 32}), w);
            }),
            "ShapeError: qmatmul: the last dimension of x is 32, but 36 bytes of Q4_0 hold 64 "
            "elements [qmatmul_c4]\n  x: f32[2, 32]   w: u8[3, 36]\n  hint: weights are stored by "
            "output column: one row of blocks for each");
  EXPECT_EQ(refused([&] {
              qmatmul("Q4_0", ones({2, 64}), ones({3, 64}));
            }),
            "TypeError: qmatmul: expected weights u8[n, bytes], got f32[3, 64] [qmatmul_c3]");
  EXPECT_EQ(refused([&] {
              qmatmul("Q4_0", ones({2, 64}), w[0]);
            }),
            "TypeError: qmatmul: expected weights u8[n, bytes], got u8[36] [qmatmul_c3]");
  EXPECT_EQ(refused([] { quantize("Q8_0", full({32}, INFINITY)).to_vector<uint8_t>(); }),
            "ValueError: encode: element 0 is inf, which Q8_0 cannot hold [encode_finite]");
}

}  // namespace
}  // namespace tenon
