// Matrix products of every kind of kernel on every path and level: small integers, so that sums are
// exact whatever their order.
#include <gtest/gtest.h>

#include "paths.h"

namespace tenon::anchors {
namespace {

struct Sizes {
  int64_t m, k, n;
};

// Values from -6 to 6 (0 to 12 for unsigned dtypes) that follow no pattern of the layouts.
std::vector<double> some_values(int64_t count, uint64_t seed, double least) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values.push_back(least + static_cast<double>(seed >> 40) / (1 << 24) * 13);
    values.back() = static_cast<double>(static_cast<int64_t>(values.back() + 100) - 100);
  }
  return values;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            const Sizes& s) {
  std::vector<double> c(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t p = 0; p < s.k; ++p) {
      for (int64_t j = 0; j < s.n; ++j) {
        c[static_cast<size_t>(i * s.n + j)] +=
            a[static_cast<size_t>(i * s.k + p)] * b[static_cast<size_t>(p * s.n + j)];
      }
    }
  }
  return c;
}

Tensor tensor_of(const std::vector<double>& values, DType dtype, int64_t rows, int64_t columns) {
  return reshape(cast(tensor(values), dtype), {rows, columns}).eval();
}

void expect_product(const Sizes& s, DType left, DType right, DType result, bool symbolic) {
  SCOPED_TRACE(fmt::format("{} {} by {}: {} {} {}", symbolic ? "symbolic" : "static", name(left),
                           name(right), s.m, s.k, s.n));
  const auto a = some_values(s.m * s.k, 1, left == u8 ? 0 : -6);
  const auto b = some_values(s.k * s.n, 2, -6);
  const auto fn = [=](const Tensors& x) {
    const Tensor c = is_float(left) ? matmul(cast(x[0], left), x[1]) : matmul(x[0], x[1], result);
    return cast(c, f32) * 0.5f;  // an epilogue
  };
  Layouts layouts;
  if (symbolic) layouts = {TensorLayout(left, {"m", "k"}), TensorLayout(right, {"k", "n"})};
  std::vector<double> wanted = product(a, b, s);
  for (double& value : wanted) value *= 0.5;
  expect_on_every_path(fn, {tensor_of(a, left, s.m, s.k), tensor_of(b, right, s.k, s.n)}, wanted,
                       layouts);
}

TEST(Products, OfWordsOnEveryPath) {
  // Sums of bf16 products that are rounded once, to a bf16 that holds them.
  for (const Sizes& s : {Sizes{1, 33, 40}, Sizes{50, 40, 33}}) {
    expect_product(s, i8, i8, i32, false);
    expect_product(s, u8, i8, i32, true);
  }
  expect_product({17, 8200, 18}, i8, i8, i32, false);  // in parts
  expect_product({15, 1100, 40}, u8, i8, i32, false);  // words are packed as they are needed
  expect_product({66, 40, 33}, i8, i8, i32, false);
  expect_product({40, 1, 40}, bf16, bf16, bf16, true);
  expect_product({35, 0, 33}, i8, i8, i32, true);
}

TEST(Products, OfFloatsOnEveryPath) {
  // Right operands that are read where they stand, in few rows or columns, and packed ones.
  for (const Sizes& s :
       {Sizes{1, 5, 40}, Sizes{3, 70, 50}, Sizes{17, 3, 2}, Sizes{33, 41, 7}, Sizes{20, 33, 17},
        Sizes{70, 40, 70}, Sizes{70, 100, 90}, Sizes{9, 21, 1}, Sizes{5, 0, 20}}) {
    for (const DType dtype : {f32, f64, f16}) expect_product(s, dtype, dtype, dtype, false);
  }
  // Over a long common dimension in parts, and sums of products.
  for (const Sizes& s : {Sizes{3, 9001, 5}, Sizes{1, 8192, 17}, Sizes{2, 9001, 1}}) {
    expect_product(s, f32, f32, f32, false);
  }
  expect_product({18, 1, 40}, bf16, bf16, bf16, false);
  expect_product({6, 33, 36}, bf16, f32, f32, false);
  expect_product({30, 33, 36}, f32, f32, f32, true);
}

TEST(Products, OverACommonDimensionOfTheCall) {
  for (const DType dtype : {f32, bf16, i8}) {
    for (const int64_t k : {0, 5, 8192, 9001}) {
      SCOPED_TRACE(fmt::format("{} of {}", k, name(dtype)));
      const Sizes s{3, k, 17};
      const auto a = some_values(s.m * s.k, 1, -6);
      const auto b = some_values(s.k * s.n, 2, -6);
      expect_on_every_path(
          [=](const Tensors& x) {
            return dtype == i8 ? cast(matmul(x[0], x[1], i32), f32) : matmul(cast(x[0], f32), x[1]);
          },
          {tensor_of(a, dtype, s.m, s.k), tensor_of(b, dtype, s.k, s.n)}, product(a, b, s),
          {TensorLayout(dtype, {3, "k"}), TensorLayout(dtype, {"k", 17})});
    }
  }
}

// The right operand stands transposed in memory.
TEST(Products, OfConstantsOnEveryPath) {
  // Packed or transposed once, with the sums that signed bytes on the left need.
  for (const Sizes& s : {Sizes{3, 300, 5}, Sizes{1, 300, 2}, Sizes{40, 256, 7}, Sizes{20, 40, 3},
                         Sizes{9, 70, 33}}) {
    for (const DType dtype : {f32, f64, f16, bf16, i8}) {
      SCOPED_TRACE(fmt::format("{}: {} {} {}", name(dtype), s.m, s.k, s.n));
      const auto a = some_values(s.m * s.k, 1, -6);
      const auto b = some_values(s.k * s.n, 2, -6);
      const Tensor weight = tensor_of(b, dtype, s.k, s.n);
      const auto fn = [=](const Tensors& x) {
        const Tensor c = dtype == i8 ? matmul(x[0], weight, i32) : matmul(x[0], weight);
        return cast(c, f32);
      };
      std::vector<double> wanted = product(a, b, s);
      if (is_half(dtype)) {
        for (double& value : wanted) {
          value = cast(cast(tensor(value), dtype), f64).eval().item<double>();
        }
      }
      expect_on_every_path(fn, {tensor_of(a, dtype, s.m, s.k)}, wanted);
    }
  }
}

TEST(Products, OfTransposedOnEveryPath) {
  for (const Sizes& s : {Sizes{1, 37, 40}, Sizes{9, 70, 5}, Sizes{20, 3, 1}, Sizes{3, 20, 18}}) {
    for (const DType dtype : {f32, f16}) {
      SCOPED_TRACE(fmt::format("{}: {} {} {}", name(dtype), s.m, s.k, s.n));
      const auto a = some_values(s.m * s.k, 1, -6);
      const auto b = some_values(s.k * s.n, 2, -6);
      std::vector<double> turned;
      for (int64_t j = 0; j < s.n; ++j) {
        for (int64_t k = 0; k < s.k; ++k) turned.push_back(b[static_cast<size_t>(k * s.n + j)]);
      }
      const Tensors operands = {tensor_of(a, dtype, s.m, s.k), tensor_of(turned, dtype, s.n, s.k)};
      const std::vector<double> once = product(a, b, s);
      expect_on_every_path([](const Tensors& x) { return matmul(x[0], transpose(x[1])); }, operands,
                           once);
      // The same in two batches, of which the second reads the same columns.
      std::vector<double> twice = once;
      for (const double value : once) twice.push_back(2 * value);
      expect_on_every_path(
          [](const Tensors& x) {
            const Tensor both = stack({x[0], x[0] + x[0]}, 0);
            return matmul(both, transpose(x[1]).expand_dims({0}));
          },
          operands, twice);
    }
  }
}

TEST(Products, OfBf16AccumulateInF32) {
  // One large value and many small ones: a sum in bf16 would lose these.
  for (const int64_t rows : {1, 16, 20, 70}) {
    std::vector<double> a(static_cast<size_t>(rows * 64), 1);
    std::vector<double> b(64 * 32, 0.5);
    for (int64_t j = 0; j < 32; ++j) b[static_cast<size_t>(j)] = 224;
    const double sum = 224 + 63 * 0.5;  // 255.5 becomes 256 in bf16
    expect_on_every_path([](const Tensors& x) { return matmul(x[0], x[1]); },
                         {tensor_of(a, bf16, rows, 64), tensor_of(b, bf16, 64, 32)},
                         std::vector<double>(static_cast<size_t>(rows * 32), sum > 255 ? 256 : 0));
  }
}

TEST(Products, OfBytesInI32AreWhatTheirCastsGive) {
  std::vector<double> ends(64 * 64, -128);
  const Tensor low = tensor_of(ends, i8, 64, 64);
  expect_on_every_path([](const Tensors& x) { return matmul(x[0], x[0], i32); }, {low},
                       std::vector<double>(64 * 64, 64 * 128 * 128));
  expect_on_every_path([](const Tensors& x) { return matmul(x[0], x[0]); }, {low},
                       std::vector<double>(64 * 64, 0));  // i8 wraps
}

}  // namespace
}  // namespace tenon::anchors
