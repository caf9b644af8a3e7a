// Special values and edges of elementwise ops: what IEEE 754, C99 and NumPy give, on every path.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "paths.h"

namespace tenon::anchors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor floats(DType dtype, const std::vector<double>& values) {
  return cast(tensor(values), dtype).eval();
}
Tensor ints(DType dtype, const std::vector<int64_t>& values) {
  return cast(tensor(values), dtype).eval();
}

class Floats : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, Floats, testing::Values(f32, f64, f16, bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

// MAX 8: NaN and infinities pass through functions, comparisons and casts.
TEST_P(Floats, FunctionsKeepNanAndInfinity) {
  const DType dtype = GetParam();
  expect_rows(
      {
          {"exp", [](const Tensors& x) { return exp(x[0]); }, {kNan, kInf, 0}},
          {"tanh", [](const Tensors& x) { return tanh(x[0]); }, {kNan, 1, -1}},
          {"sigmoid", [](const Tensors& x) { return sigmoid(x[0]); }, {kNan, 1, 0}},
          {"relu", [](const Tensors& x) { return relu(x[0]); }, {kNan, kInf, 0}},
          {"acos", [](const Tensors& x) { return acos(x[0]); }, {kNan, kNan, kNan}},
          {"log", [](const Tensors& x) { return log(x[0]); }, {kNan, kInf, kNan}},
          {"log1p", [](const Tensors& x) { return log1p(x[0]); }, {kNan, kInf, kNan}},
          {"sqrt", [](const Tensors& x) { return sqrt(x[0]); }, {kNan, kInf, kNan}},
          {"gelu", [](const Tensors& x) { return gelu(x[0]); }, {kNan, kInf, -0.0}},
          {"silu", [](const Tensors& x) { return silu(x[0]); }, {kNan, kInf, kNan}},
          {"erf", [](const Tensors& x) { return erf(x[0]); }, {kNan, 1, -1}},
          {"sin", [](const Tensors& x) { return sin(x[0]); }, {kNan, kNan, kNan}},
          {"pow 0.5", [](const Tensors& x) { return pow(x[0], 0.5); }, {kNan, kInf, kInf}},
          {"pow 0", [](const Tensors& x) { return pow(x[0], 0); }, {1, 1, 1}},
          {"1 pow", [](const Tensors& x) { return pow(ones({1}, x[0].dtype()), x[0]); }, {1, 1, 1}},
          {"maximum 0", [](const Tensors& x) { return maximum(x[0], 0); }, {kNan, kInf, 0}},
          {"0 minimum", [](const Tensors& x) { return minimum(0, x[0]); }, {kNan, 0, -kInf}},
          {"clip", [](const Tensors& x) { return clip(x[0], -1, 1); }, {kNan, 1, -1}},
          {"fmax", [](const Tensors& x) { return fmax(x[0], 2); }, {2, kInf, 2}},
          {"fmin", [](const Tensors& x) { return fmin(2, x[0]); }, {2, 2, -kInf}},
          {"sign", [](const Tensors& x) { return sign(x[0]); }, {kNan, 1, -1}},
          {"floor", [](const Tensors& x) { return floor(x[0]); }, {kNan, kInf, -kInf}},
          {"round", [](const Tensors& x) { return round(x[0]); }, {kNan, kInf, -kInf}},
          {"to bool", [](const Tensors& x) { return cast(x[0], bool_); }, {1, 1, 1}},
          {"x == x", [](const Tensors& x) { return x[0] == x[0]; }, {0, 1, 1}},
          {"x != x", [](const Tensors& x) { return x[0] != x[0]; }, {1, 0, 0}},
          {"x * 0", [](const Tensors& x) { return x[0] * 0; }, {kNan, kNan, kNan}},
          {"x - x", [](const Tensors& x) { return x[0] - x[0]; }, {kNan, kNan, kNan}},
          {"0 / x", [](const Tensors& x) { return 0.0f / x[0]; }, {kNan, 0, -0.0}},
          {"x / x", [](const Tensors& x) { return x[0] / x[0]; }, {kNan, kNan, kNan}},
          {"5 % x",
           [](const Tensors& x) { return full({1}, 5, x[0].dtype()) % x[0]; },
           {kNan, 5, -kInf}},
      },
      {floats(dtype, {kNan, kInf, -kInf})});
}

// The folder, the simplifier and the code keep the sign of zero and what IEEE says of it.
TEST_P(Floats, SignedZeros) {
  const DType dtype = GetParam();
  expect_rows(
      {
          {"x + 0", [](const Tensors& x) { return x[0] + 0; }, {0, 0, 1, -1}},
          {"x + -0", [](const Tensors& x) { return x[0] + (-0.0); }, {0, -0.0, 1, -1}},
          {"x - 0", [](const Tensors& x) { return x[0] - 0; }, {0, -0.0, 1, -1}},
          {"0 - x", [](const Tensors& x) { return 0 - x[0]; }, {0, 0, -1, 1}},
          {"-x", [](const Tensors& x) { return -x[0]; }, {-0.0, 0, -1, 1}},
          {"x * 0", [](const Tensors& x) { return x[0] * 0; }, {0, -0.0, 0, -0.0}},
          {"x * -1", [](const Tensors& x) { return x[0] * -1; }, {-0.0, 0, -1, 1}},
          {"abs", [](const Tensors& x) { return abs(x[0]); }, {0, 0, 1, 1}},
          {"sqrt", [](const Tensors& x) { return sqrt(x[0]); }, {0, -0.0, 1, kNan}},
          {"sign", [](const Tensors& x) { return sign(x[0]); }, {0, 0, 1, -1}},
          {"relu", [](const Tensors& x) { return relu(x[0]); }, {0, -0.0, 1, 0}},
          {"maximum(x, 0)", [](const Tensors& x) { return maximum(x[0], 0); }, {0, 0, 1, 0}},
          {"maximum(x, -0)",
           [](const Tensors& x) { return maximum(x[0], -0.0); },
           {0, -0.0, 1, -0.0}},
          {"minimum(0, x)", [](const Tensors& x) { return minimum(0, x[0]); }, {0, -0.0, 0, -1}},
          {"reciprocal", [](const Tensors& x) { return reciprocal(x[0]); }, {kInf, -kInf, 1, -1}},
          {"rsqrt", [](const Tensors& x) { return rsqrt(x[0]); }, {kInf, -kInf, 1, kNan}},
          {"round of half", [](const Tensors& x) { return round(x[0] * 0.5); }, {0, -0.0, 0, -0.0}},
          {"ceil of half", [](const Tensors& x) { return ceil(x[0] * 0.5); }, {0, -0.0, 1, -0.0}},
          {"trunc of half", [](const Tensors& x) { return trunc(x[0] * 0.5); }, {0, -0.0, 0, -0.0}},
          {"signbit", [](const Tensors& x) { return signbit(x[0]); }, {0, 1, 0, 1}},
          {"x == 0", [](const Tensors& x) { return x[0] == 0; }, {1, 1, 0, 0}},
          {"tanh", [](const Tensors& x) { return tanh(x[0]) * 0; }, {0, -0.0, 0, -0.0}},
          {"atanh(x / 2)",
           [](const Tensors& x) { return atanh(x[0] / 2) * 0; },
           {0, -0.0, 0, -0.0}},
          {"x * (x >= 0)",
           [](const Tensors& x) { return x[0] * cast(x[0] >= 0, x[0].dtype()); },
           {0, -0.0, 1, -0.0}},
          {"atan2(x, -0) / pi",
           [](const Tensors& x) { return round(atan2(x[0], full({1}, -0.0, x[0].dtype()))); },
           {3, -3, 2, -2}},
          {"atan2(x, 0) * 0",
           [](const Tensors& x) { return atan2(x[0], zeros({1}, x[0].dtype())) * 0; },
           {0, -0.0, 0, -0.0}},
          {"copysign(2, x)",
           [](const Tensors& x) { return copysign(full({1}, 2, x[0].dtype()), x[0]); },
           {2, -2, 2, -2}},
          {"x % 3", [](const Tensors& x) { return x[0] % 3; }, {0, 0, 1, 2}},
          {"x % -3", [](const Tensors& x) { return x[0] % -3; }, {-0.0, -0.0, -2, -1}},
          {"fmod(x, 3)", [](const Tensors& x) { return fmod(x[0], 3); }, {0, -0.0, 1, -1}},
          {"floor_divide(x, 3)",
           [](const Tensors& x) { return floor_divide(x[0], 3); },
           {0, -0.0, 0, -1}},
      },
      {floats(dtype, {0.0, -0.0, 1, -1})});
}

// PyTorch 1.5 (x % inf), bug kinds B053 and B105: C99 Annex F at the ends of functions.
TEST(Specials, EndsOfFunctions) {
  expect_rows(
      {
          {"x % inf", [](const Tensors& x) { return x[0] % INFINITY; }, {5, 0, kInf, 0}},
          {"x % 0", [](const Tensors& x) { return x[0] % 0; }, {kNan, kNan, kNan, kNan}},
          {"fmod(x, inf)", [](const Tensors& x) { return fmod(x[0], INFINITY); }, {5, 0, -5, -0.0}},
          {"x // 0",
           [](const Tensors& x) { return floor_divide(x[0], 0); },
           {kInf, kNan, -kInf, kNan}},
          {"x / 0", [](const Tensors& x) { return x[0] / 0; }, {kInf, kNan, -kInf, kNan}},
          {"pow(0, x)", [](const Tensors& x) { return pow(zeros({1}), x[0]); }, {0, 1, kInf, 1}},
          {"pow(-0, x)",
           [](const Tensors& x) { return pow(full({1}, -0.0f), x[0]); },
           {-0.0, 1, -kInf, 1}},
          {"pow(-1, inf)",
           [](const Tensors& x) { return pow(full({1}, -1.0f), x[0] * INFINITY); },
           {1, kNan, 1, kNan}},
          {"pow(inf, x)",
           [](const Tensors& x) { return pow(full({1}, INFINITY), x[0]); },
           {kInf, 1, 0, 1}},
          {"log1p(-1)",
           [](const Tensors& x) { return log1p(x[0] * 0 - 1); },
           {-kInf, -kInf, -kInf, -kInf}},
          {"atanh(1)", [](const Tensors& x) { return atanh(sign(x[0])); }, {kInf, 0, -kInf, 0}},
          {"hypot(inf, nan)",
           [](const Tensors& x) { return hypot(full({1}, INFINITY), x[0] * NAN); },
           {kInf, kInf, kInf, kInf}},
          {"exp(-inf)",
           [](const Tensors& x) { return exp(abs(x[0]) * 0 - INFINITY); },
           {0, 0, 0, 0}},
          {"erfc(-inf)",
           [](const Tensors& x) { return erfc(abs(x[0]) * 0 - INFINITY); },
           {2, 2, 2, 2}},
          {"sigmoid(-1000)",
           [](const Tensors& x) { return sigmoid(abs(x[0]) * 0 - 1000); },
           {0, 0, 0, 0}},
      },
      {floats(f32, {5, 0, -5, -0.0})});
}

// MAX 15 and B086: numbers below the smallest normal one are numbers.
TEST(Specials, SubnormalNumbers) {
  const double tiny = std::ldexp(1.0, -149);
  expect_rows(
      {
          {"x == 0", [](const Tensors& x) { return x[0] == 0; }, {0, 0, 0}},
          {"x * 2",
           [](const Tensors& x) { return x[0] * 2; },
           {2 * tiny, -2 * tiny, 2 * double(1e-40f)}},
          {"x * inf", [](const Tensors& x) { return x[0] * INFINITY; }, {kInf, -kInf, kInf}},
          {"x + x",
           [](const Tensors& x) { return x[0] + x[0]; },
           {2 * tiny, -2 * tiny, 2 * double(1e-40f)}},
          {"maximum", [](const Tensors& x) { return maximum(x[0], 0); }, {tiny, 0, double(1e-40f)}},
          {"sign", [](const Tensors& x) { return sign(x[0]); }, {1, -1, 1}},
          {"to f64",
           [](const Tensors& x) { return cast(x[0], f64); },
           {tiny, -tiny, double(1e-40f)}},
          {"to bool", [](const Tensors& x) { return cast(x[0], bool_); }, {1, 1, 1}},
          {"1e-38 / 4",
           [](const Tensors& x) { return x[0] * 0 + full({1}, 1e-38f) / 4; },
           {double(1e-38f / 4), double(1e-38f / 4), double(1e-38f / 4)}},
      },
      {floats(f32, {tiny, -tiny, 1e-40})});
  expect_rows(
      {
          {"log", [](const Tensors& x) { return log(x[0]); }, {-103.278929903431851, -92.1034037}},
          {"log2", [](const Tensors& x) { return log2(x[0]); }, {-149, -132.87712379}},
          {"sqrt", [](const Tensors& x) { return sqrt(x[0]); }, {3.743392066e-23, 9.99997e-21}},
          {"tanh", [](const Tensors& x) { return tanh(x[0]); }, {tiny, double(1e-40f)}},
          {"sin", [](const Tensors& x) { return sin(x[0]); }, {tiny, double(1e-40f)}},
          {"expm1", [](const Tensors& x) { return expm1(x[0]); }, {tiny, double(1e-40f)}},
          {"sinh", [](const Tensors& x) { return sinh(x[0]); }, {tiny, double(1e-40f)}},
          {"asinh", [](const Tensors& x) { return asinh(x[0]); }, {tiny, double(1e-40f)}},
          {"atan", [](const Tensors& x) { return atan(x[0]); }, {tiny, double(1e-40f)}},
          {"asin", [](const Tensors& x) { return asin(x[0]); }, {tiny, double(1e-40f)}},
          {"tan", [](const Tensors& x) { return tan(x[0]); }, {tiny, double(1e-40f)}},
          {"atanh", [](const Tensors& x) { return atanh(x[0]); }, {tiny, double(1e-40f)}},
          {"log1p", [](const Tensors& x) { return log1p(x[0]); }, {tiny, double(1e-40f)}},
          {"erf", [](const Tensors& x) { return erf(x[0]); }, {tiny, 1.12836756e-40}},
          {"cbrt", [](const Tensors& x) { return cbrt(x[0]); }, {1.119034708e-15, 4.641580631e-14}},
      },
      {floats(f32, {tiny, 1e-40})}, 2e-6);
  expect_on_every_path([](const Tensors& x) { return x[0] * 1e100; },
                       {floats(f64, {1e-310, 5e-324})}, {1e-310 * 1e100, 5e-324 * 1e100});
  expect_on_every_path([](const Tensors& x) { return x[0] * 0.5f; },
                       {floats(f16, {std::ldexp(1, -24), std::ldexp(3, -24)})},
                       {0, std::ldexp(2, -24)});
}

// B070: floats are added in the order that was written.
TEST(Specials, NothingIsReassociated) {
  expect_on_every_path([](const Tensors& x) { return x[0] - (x[0] + x[1]) + x[1]; },
                       {floats(f32, {1e30, 1}), floats(f32, {1, 1e30})}, {1, 0});
  expect_on_every_path(
      [](const Tensors& x) {
        const Tensor s = x[0] + (-1e30f) * (1 - x[1]);
        return s - max(s);
      },
      {floats(f32, {0.7f, 0.5f}), tensor(1.0f)}, {0, double(0.5f - 0.7f)});
  // x + 0.0 turns -0.0 into +0.0, however often it is written (B089).
  expect_on_every_path(
      [](const Tensors& x) {
        Tensor y = x[0];
        for (int i = 0; i < 300; ++i) y = y + 0.0f;
        return y;
      },
      {floats(f32, {1, -0.0})}, {1, 0});
}

// PyTorch 1.5: an explicit cast rounds; nothing skips a rounding to a narrow format.
TEST(Casts, RoundTripsThroughNarrowFloats) {
  const Tensor x = floats(f32, {65519, 65520, 3.14159f, 1e-8f, -65504, 1 + std::ldexp(1, -11)});
  expect_on_every_path([](const Tensors& in) { return cast(cast(in[0], f16), f32); }, {x},
                       {65504, kInf, 3.140625, 0, -65504, 1});
  expect_on_every_path([](const Tensors& in) { return cast(cast(in[0], bf16), f32); }, {x},
                       {65536, 65536, 3.140625, 1.0011717677116394e-08, -65536, 1});
  // Each op of a narrow format rounds its own result: 2048 + 1 + 1 is 2048 in f16.
  expect_on_every_path([](const Tensors& in) { return in[0] + 1 + 1; }, {floats(f16, {2048})},
                       {2048});
  expect_on_every_path([](const Tensors& in) { return in[0] * 2 / 2; }, {floats(f16, {60000})},
                       {kInf});
  // f64 to f16 and bf16 rounds once: through f32 this would round twice.
  expect_on_every_path(
      [](const Tensors& in) { return cast(cast(in[0], f16), f64); },
      {floats(f64, {1 + std::ldexp(1, -11) + std::ldexp(1, -40), 1 + std::ldexp(1, -11)})},
      {1 + std::ldexp(1, -10), 1});
  expect_on_every_path(
      [](const Tensors& in) { return cast(cast(in[0], bf16), f64); },
      {floats(f64, {1 + std::ldexp(1, -8) + std::ldexp(1, -40), 1 + std::ldexp(1, -8)})},
      {1 + std::ldexp(1, -7), 1});
}

// B017 and MAX 13: floats out of range saturate and NaN is 0, at every position and length.
TEST(Casts, FloatsToIntegersSaturate) {
  const std::vector<double> values = {-1.5, -0.5,  0.5,  255.9, 256,          300,    -300,  kNan,
                                      kInf, -kInf, 1e10, -1e10, 2147483648.0, 9.3e18, 1.9e19};
  for (const DType from : {f32, f64}) {
    SCOPED_TRACE(name(from));
    constexpr double kMax32 = 2147483647, kMin32 = -2147483648.0;
    const double big = from == f32 ? double(9.3e18f) : 9.3e18;
    const double ten = 1e10;
    expect_rows(
        {
            {"u8",
             [](const Tensors& x) { return cast(x[0], u8); },
             {0, 0, 0, 255, 255, 255, 0, 0, 255, 0, 255, 0, 255, 255, 255}},
            {"i8",
             [](const Tensors& x) { return cast(x[0], i8); },
             {-1, 0, 0, 127, 127, 127, -128, 0, 127, -128, 127, -128, 127, 127, 127}},
            {"u16",
             [](const Tensors& x) { return cast(x[0], u16); },
             {0, 0, 0, 255, 256, 300, 0, 0, 65535, 0, 65535, 0, 65535, 65535, 65535}},
            {"i16",
             [](const Tensors& x) { return cast(x[0], i16); },
             {-1, 0, 0, 255, 256, 300, -300, 0, 32767, -32768, 32767, -32768, 32767, 32767, 32767}},
            {"i32",
             [](const Tensors& x) { return cast(x[0], i32); },
             {-1, 0, 0, 255, 256, 300, -300, 0, kMax32, kMin32, kMax32, kMin32, kMax32, kMax32,
              kMax32}},
            {"u32",
             [](const Tensors& x) { return cast(x[0], u32); },
             {0, 0, 0, 255, 256, 300, 0, 0, 4294967295.0, 0, 4294967295.0, 0, 2147483648.0,
              4294967295.0, 4294967295.0}},
            {"i64",
             [](const Tensors& x) { return cast(x[0], i64); },
             {-1, 0, 0, 255, 256, 300, -300, 0, 9223372036854775807.0, -9223372036854775808.0, ten,
              -ten, 2147483648.0, 9223372036854775807.0, 9223372036854775807.0}},
            {"u64",
             [](const Tensors& x) { return cast(x[0], u64); },
             {0, 0, 0, 255, 256, 300, 0, 0, 18446744073709551615.0, 0, ten, 0, 2147483648.0, big,
              18446744073709551615.0}},
            {"bool",
             [](const Tensors& x) { return cast(x[0], bool_); },
             {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        },
        {floats(from, values)});
  }
  expect_rows({{"u8", [](const Tensors& x) { return cast(x[0], u8); }, {255, 0, 0, 3}},
               {"i64", [](const Tensors& x) { return cast(x[0], i64); }, {65504, -65504, 0, 3}}},
              {floats(f16, {65504, -65504, kNan, 3.9})});
  expect_rows(
      {{"i64", [](const Tensors& x) { return cast(x[0], i64); }, {9223372036854775807.0, 0, -3}}},
      {floats(bf16, {1e30, kNan, -3.9})});
}

// Integers between widths wrap; to floats they round once; beyond 2^63 they stay positive.
TEST(Casts, Integers) {
  const Tensor large = ints(u64, {-1, 1, int64_t{-9223372036854775807} - 1});  // 2^64-1, 1, 2^63
  expect_rows(
      {
          {"u64 to f64",
           [](const Tensors& x) { return cast(x[0], f64); },
           {18446744073709551616.0, 1, 9223372036854775808.0}},
          {"u64 to f32",
           [](const Tensors& x) { return cast(x[0], f32); },
           {18446744073709551616.0, 1, 9223372036854775808.0}},
          {"u64 to i8", [](const Tensors& x) { return cast(x[0], i8); }, {-1, 1, 0}},
          {"u64 / 2",
           [](const Tensors& x) { return floor_divide(x[0], 2); },
           {9223372036854775807.0, 0, 4611686018427387904.0}},
          {"u64 % 10", [](const Tensors& x) { return x[0] % 10; }, {5, 1, 8}},
          {"u64 > 1", [](const Tensors& x) { return x[0] > 1; }, {1, 0, 1}},
          {"u64 max",
           [](const Tensors& x) { return maximum(x[0], 2); },
           {18446744073709551615.0, 2, 9223372036854775808.0}},
          {"u64 >> 63", [](const Tensors& x) { return x[0] >> 63; }, {1, 0, 1}},
      },
      {large});
  expect_rows(
      {
          {"to i8", [](const Tensors& x) { return cast(x[0], i8); }, {44, -1, 0}},
          {"to u8", [](const Tensors& x) { return cast(x[0], u8); }, {44, 255, 0}},
          {"to u64",
           [](const Tensors& x) { return cast(x[0], u64); },
           {300, 18446744073709551615.0, 2147483648.0 * 0 + 18446744071562067968.0}},
          {"to bool", [](const Tensors& x) { return cast(x[0], bool_); }, {1, 1, 1}},
      },
      {ints(i32, {300, -1, -2147483648ll})});
  expect_on_every_path([](const Tensors& x) { return cast(x[0], f32); },
                       {ints(i64, {(1ll << 53) + 1, 16777217, -16777219})},
                       {9007199254740992.0, 16777216, -16777220});
}

// MAX 13, 20, PyTorch's SIGFPE, B129, B137, B154, B157: exact, wrapping, never a trap.
TEST(Integers, DivisionPowersAndShifts) {
  constexpr int64_t kMin = -2147483648ll;
  expect_rows(
      {
          {"//",
           [](const Tensors& x) { return floor_divide(x[0], x[1]); },
           {double(kMin), -4, -4, 0, 2, 1}},
          {"%", [](const Tensors& x) { return x[0] % x[1]; }, {0, -1, 1, 0, 0, 0}},
          {"fmod", [](const Tensors& x) { return fmod(x[0], x[1]); }, {0, 1, -1, 0, 0, 0}},
          {"pow", [](const Tensors& x) { return pow(x[0], x[1]); }, {0, 0, 49, 1, 0, 2110296937}},
          {"// 0", [](const Tensors& x) { return floor_divide(x[0], 0); }, {0, 0, 0, 0, 0, 0}},
          {"% -1", [](const Tensors& x) { return x[0] % -1; }, {0, 0, 0, 0, 0, 0}},
          {"// -1",
           [](const Tensors& x) { return floor_divide(x[0], -1); },
           {double(kMin), -7, 7, -5, -110, -41}},
          {"// 2",
           [](const Tensors& x) { return floor_divide(x[0], 2); },
           {-1073741824.0, 3, -4, 2, 55, 20}},
          {"% 4", [](const Tensors& x) { return x[0] % 4; }, {0, 3, 1, 1, 2, 1}},
          {"abs", [](const Tensors& x) { return abs(x[0]); }, {double(kMin), 7, 7, 5, 110, 41}},
          {"x / 4",
           [](const Tensors& x) { return x[0] / 4; },
           {-536870912.0, 1.75, -1.75, 1.25, 27.5, 10.25}},
      },
      {ints(i32, {kMin, 7, -7, 5, 110, 41}), ints(i32, {-1, -2, 2, 0, 55, 41})});
  for (const DType dtype : {i8, i16, i32, i64}) {
    SCOPED_TRACE(name(dtype));
    const double lowest = -std::ldexp(1.0, int(size_of(dtype)) * 8 - 1);
    const int64_t width = int64_t(size_of(dtype)) * 8;
    const Tensor x = ints(dtype, {int64_t(lowest), -1, 1, -8});
    expect_rows(
        {
            {"x // -1",
             [](const Tensors& in) { return floor_divide(in[0], -1); },
             {lowest, 1, -1, 8}},
            {"x % -1", [](const Tensors& in) { return in[0] % -1; }, {0, 0, 0, 0}},
            {"x % 0", [](const Tensors& in) { return in[0] % 0; }, {0, 0, 0, 0}},
            {"-x", [](const Tensors& in) { return -in[0]; }, {lowest, 1, -1, 8}},
            {"x >> 1", [](const Tensors& in) { return in[0] >> 1; }, {lowest / 2, -1, 0, -4}},
            {"x >> width", [=](const Tensors& in) { return in[0] >> width; }, {-1, -1, 0, -1}},
            {"x >> -1", [](const Tensors& in) { return in[0] >> -1; }, {-1, -1, 0, -1}},
            {"x << width - 1",
             [=](const Tensors& in) { return in[0] << (width - 1); },
             {0, lowest, lowest, 0}},
            {"x << width", [=](const Tensors& in) { return in[0] << width; }, {0, 0, 0, 0}},
            {"x << -1", [](const Tensors& in) { return in[0] << -1; }, {0, 0, 0, 0}},
            {"~x",
             [](const Tensors& in) { return ~in[0]; },
             {-lowest - (width == 64 ? 0 : 1), 0, -2, 7}},
            {"2 ** x", [](const Tensors& in) { return pow(2, in[0]); }, {0, 0, 2, 0}},
            {"x ** -3", [](const Tensors& in) { return pow(in[0], -3); }, {0, -1, 1, 0}},
            {"x ** 64", [](const Tensors& in) { return pow(in[0], 64); }, {0, 1, 1, 0}},
            {"sign", [](const Tensors& in) { return sign(in[0]); }, {-1, -1, 1, -1}},
            {"x + x", [](const Tensors& in) { return in[0] + in[0]; }, {0, -2, 2, -16}},
        },
        {x});
    on_every_path(
        [](const Tensors& in) {
          return Tensors{in[0] << in[0], in[0] >> in[0], ~in[0]};
        },
        {x},
        [dtype](const Tensors& got) {
          for (const Tensor& y : got) EXPECT_EQ(y.dtype(), dtype);
        });
  }
  for (const DType dtype : {u8, u16, u32, u64}) {
    SCOPED_TRACE(name(dtype));
    const double highest = std::ldexp(1.0, int(size_of(dtype)) * 8) - 1;
    const int64_t width = int64_t(size_of(dtype)) * 8;
    expect_rows(
        {
            {"-x", [](const Tensors& in) { return -in[0]; }, {1, highest, 0, highest - 6}},
            {"x + 1", [](const Tensors& in) { return in[0] + 1; }, {0, 2, 1, 8}},
            {"x - 8",
             [](const Tensors& in) { return in[0] - 8; },
             {highest - 8, highest - 6, highest - 7, highest}},
            {"x // 3",
             [](const Tensors& in) { return floor_divide(in[0], 3); },
             {std::floor(highest / 3), 0, 0, 2}},
            {"x % 0", [](const Tensors& in) { return in[0] % 0; }, {0, 0, 0, 0}},
            {"x >> width - 1",
             [=](const Tensors& in) { return in[0] >> (width - 1); },
             {1, 0, 0, 0}},
            {"x >> width", [=](const Tensors& in) { return in[0] >> width; }, {0, 0, 0, 0}},
            {"x << width", [=](const Tensors& in) { return in[0] << width; }, {0, 0, 0, 0}},
            {"sign", [](const Tensors& in) { return sign(in[0]); }, {1, 1, 0, 1}},
            {"abs", [](const Tensors& in) { return abs(in[0]); }, {highest, 1, 0, 7}},
            {"x > 1", [](const Tensors& in) { return in[0] > 1; }, {1, 0, 0, 1}},
            {"x ** 2", [](const Tensors& in) { return pow(in[0], 2); }, {1, 1, 0, 49}},
        },
        {ints(dtype, {-1, 1, 0, 7})});
  }
  // Exact where a division through floats is not.
  expect_on_every_path([](const Tensors& x) { return floor_divide(x[0], x[1]) - x[2]; },
                       {ints(i64, {(1ll << 53) + 1, 1ll << 62}), ints(i64, {1, 3}),
                        ints(i64, {(1ll << 53) + 1, 1537228672809129301})},
                       {0, 0});
  expect_on_every_path([](const Tensors& x) { return pow(x[0], x[1]); },
                       {ints(i32, {3}), ints(i32, {40})}, {689956897});
  expect_on_every_path([](const Tensors& x) { return pow(x[0], x[1]); },
                       {ints(i8, {2}), ints(i8, {64})}, {0});
  expect_on_every_path([](const Tensors& x) { return x[0] + 1 - x[1]; },
                       {ints(i64, {(1ll << 53) + 1}), ints(i64, {1ll << 53})}, {2});
}

// Exact for all pairs to 600 (41 // 41 is 0 through a float reciprocal).
TEST(Integers, QuotientsOfAllPairs) {
  on_every_path(
      [](const Tensors& x) {
        const Tensor q = floor_divide(x[0], x[1]), r = x[0] % x[1];
        const Tensor right = (q * x[1] + r == x[0]) & (r >= 0) & (r < x[1]);
        return Tensors{sum(cast(right, i64))};
      },
      {(arange(600, i32) + 1).reshape({600, 1}).eval(), (arange(600, i32) + 1).eval()},
      [](const Tensors& got) { expect_values(got[0], {360000}); },
      {TensorLayout(i32, {"n", 1}), TensorLayout(i32, {"m"})});
}

// B100 and MAX 13: true is 1; the sum of two booleans is true.
TEST(Booleans, AreZeroAndOne) {
  std::vector<double> line;
  for (int i = 0; i < 33; ++i) line.push_back(-2 + i * 0.125);
  const Tensor x = floats(f32, line);
  std::vector<double> wanted, sums;
  for (const double v : line) {
    wanted.push_back(v < 0 ? -0.0 : v);
    sums.push_back(v > 0);
  }
  on_every_path(
      [](const Tensors& in) {
        return Tensors{in[0] * cast(in[0] >= 0, f32), (in[0] > 0) + (in[0] > 1),
                       sum(cast(in[0] > 0, f32)), sum(in[0] > 0), in[0] * (in[0] >= 0)};
      },
      {x},
      [&](const Tensors& got) {
        expect_values(got[0], wanted);
        expect_values(got[1], sums);
        EXPECT_EQ(got[1].dtype(), bool_);
        expect_values(got[2], {16});
        expect_values(got[3], {16});
        expect_values(got[4], wanted);
      });
}

// B135: numbers beside tensors take the tensor's dtype at full precision; MAX 17: or are refused.
TEST(Numbers, AreExactOrRefused) {
  expect_rows(
      {
          {"x * 0.1", [](const Tensors& x) { return x[0] * 0.1; }, {0.1}},
          {"x + 1e-4", [](const Tensors& x) { return x[0] + 1e-4; }, {1.0001}},
          {"where", [](const Tensors& x) { return where(x[0] > 0, 0.1, x[0]); }, {0.1}},
          {"maximum", [](const Tensors& x) { return maximum(x[0], M_PI); }, {M_PI}},
      },
      {floats(f64, {1})});
  expect_values(full({1}, 0.1, f64).eval(), {0.1});
  expect_values(full({1}, 16777217.9, i32).eval(), {16777217});
  const auto refused = [](const std::function<Tensor()>& fn) {
    try {
      fn().eval();
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("ran");
  };
  const Tensor half = ones({1}, f16), one = ones({1});
  EXPECT_NE(refused([&] { return half * 1e6; }).find("mul: 1000000 has no f16 value"),
            std::string::npos);
  EXPECT_NE(refused([&] { return full({1}, 300, u8); }).find("300"), std::string::npos);
  EXPECT_NE(refused([&] { return one + 1e40; }).find("f32"), std::string::npos);
  EXPECT_NE(refused([&] { return one + ((1 << 25) + 1); }).find("33554433"), std::string::npos);
  EXPECT_NE(refused([&] { return cast(one, u8) + 300; }).find("300"), std::string::npos);
  EXPECT_NE(refused([&] { return cast(one, u8) + -1; }).find("-1"), std::string::npos);
  expect_values((one + INFINITY).eval(), {kInf});
  expect_values((2.0f + one).eval(), {3});
}

}  // namespace
}  // namespace tenon::anchors
