// What NumPy answers (or IEEE, or our documented rule) for the inputs where systems differ.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/interp/interpreter.h"
#include "tenon/ops/composite/arrays.h"
#include "tenon/ops/composite/nn.h"
#include "tenon/ops/composite/random.h"
#include "tenon/ops/composite/statistics.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Value vec(DType dtype, std::initializer_list<double> values) {
  Literal x(dtype, {static_cast<int64_t>(values.size())});
  int64_t i = 0;
  for (double v : values) x.set_double(i++, v);
  return ir::make_constant(x);
}
Value ints(DType dtype, std::initializer_list<int64_t> values) {
  Literal x(dtype, {static_cast<int64_t>(values.size())});
  int64_t i = 0;
  for (int64_t v : values) x.set_int(i++, v);
  return ir::make_constant(x);
}
Value filled(DType dtype, std::vector<int64_t> dims, double value) {
  Literal x(dtype, std::move(dims));
  for (int64_t i = 0; i < x.count(); ++i) x.set_double(i, value);
  return ir::make_constant(x);
}
Literal run(const Value& value) {
  ir::Graph graph;
  graph.name = "test";
  graph.results = {value};
  return interp::run(graph, {})[0];
}
void expect(const Value& value, std::vector<double> wanted, double relative = 0) {
  const Literal got = run(value);
  ASSERT_EQ(got.count(), static_cast<int64_t>(wanted.size()));
  for (int64_t i = 0; i < got.count(); ++i) {
    const double a = wanted[static_cast<size_t>(i)];
    const double b = got.get_double(i);
    if (std::isnan(a)) {
      EXPECT_TRUE(std::isnan(b)) << i << ": " << b;
    } else if (std::isinf(a) || relative == 0) {
      EXPECT_EQ(a, b) << i;
      if (a == 0) {
        EXPECT_EQ(std::signbit(a), std::signbit(b)) << i;
      }
    } else {
      EXPECT_NEAR(a, b, std::fabs(a) * relative) << i;
    }
  }
}

TEST(Semantics, SpecialsOfFunctions) {
  const Value nan = vec(f32, {kNan});
  for (const Value& y : {exp(nan), tanh(nan), sigmoid(nan), relu(nan), acos(nan), sqrt(nan),
                         maximum(nan, vec(f32, {0})), minimum(vec(f32, {0}), nan)}) {
    expect(y, {kNan});
  }
  expect(clip(nan, vec(f32, {-1}), vec(f32, {1})), {kNan});
  expect(acos(vec(f32, {kInf, -2.5})), {kNan, kNan});
  expect(pow(vec(f32, {kNan, kInf, 0}), vec(f32, {0.5, 0.5, 0})), {kNan, kInf, 1});
  expect(log(vec(f32, {kInf, 0, -1})), {kInf, -kInf, kNan});
  expect(log1p(vec(f32, {kInf, -1})), {kInf, -kInf});
  expect(log(vec(f32, {1e-40})), {-92.1034}, 1e-6);
  expect(tanh(vec(f64, {1e-40})), {1e-40});
  expect(cast(nan, bool_), {1});
  expect(gelu(vec(f64, {-6, kInf, -kInf})), {-5.919526e-09, kInf, 0}, 1e-6);
  expect(erf(vec(f64, {1e-7})), {1.1283791670955088e-07}, 1e-15);
  expect(atanh(vec(f64, {1e-7, -0.0})), {1e-7, -0.0}, 1e-14);
  expect(mul(vec(f32, {kNan, kInf, 1, -kInf}), vec(f32, {0})), {kNan, kNan, 0, kNan});
  expect(fmax(vec(f32, {kNan, 1}), vec(f32, {2, kNan})), {2, 1});
  expect(sign(vec(f32, {kNan, -0.0, -3})), {kNan, 0, -1});
  expect(round(vec(f32, {0.5, 1.5, 2.5, -0.5})), {0, 2, 2, -0.0});
}

TEST(Semantics, FloatDivision) {
  expect(mod(vec(f32, {5, 0, -5, 5.5, -5.5}), vec(f32, {kInf, kInf, 3, -2, 2})),
         {5, 0, 1, -0.5, 0.5});
  expect(mod(vec(f32, {1}), vec(f32, {0})), {kNan});
  expect(floor_divide(vec(f32, {7, -7, 1, -0.0}), vec(f32, {2, 2, 0, 3})), {3, -4, kInf, -0.0});
  expect(fmod(vec(f32, {-5, 5}), vec(f32, {3, -3})), {-2, 2});
}

TEST(Semantics, Integers) {
  constexpr int64_t kMin32 = std::numeric_limits<int32_t>::min();
  const Value low = ints(i32, {kMin32});
  const Value minus = ints(i32, {-1});
  expect(mod(low, minus), {0});
  expect(fmod(low, minus), {0});
  expect(floor_divide(low, minus), {static_cast<double>(kMin32)});
  expect(floor_divide(ints(i64, {7, -7, 5}), ints(i64, {-2, 2, 0})), {-4, -4, 0});
  expect(mod(ints(i64, {7, -7, 5}), ints(i64, {-2, 2, 0})), {-1, 1, 0});
  EXPECT_EQ(run(floor_divide(ints(i64, {(int64_t{1} << 53) + 1}), ints(i64, {1}))).get_int(0),
            (int64_t{1} << 53) + 1);
  expect(pow(ints(i32, {5, -1, 1, 2}), ints(i32, {-3, -3, -3, 10})), {0, -1, 1, 1024});
  expect(add(ints(u8, {250}), ints(u8, {10})), {4});
  expect(abs(ints(i8, {-128})), {-128});
  expect(left_shift(ints(i8, {1, 1, 1}), ints(i8, {7, 8, -1})), {-128, 0, 0});
  expect(right_shift(ints(i8, {-128, -1}), ints(i8, {100, -1})), {-1, -1});
  expect(add(ints(bool_, {1}), ints(bool_, {1})), {1});
  expect(bitwise_not(ints(bool_, {1, 0})), {0, 1});
  EXPECT_EQ(run(div(ints(i32, {1}), ints(i32, {3}))).dtype(), f64);
}

TEST(Semantics, Casts) {
  expect(cast(vec(f64, {300, -300, kNan, kInf, -1.9}), i8), {127, -128, 0, 127, -1});
  expect(cast(vec(f32, {-1, 1e20}), u32), {0, 4294967295.0});
  expect(cast(ints(i32, {300}), u8), {44});
  expect(cast(cast(vec(f32, {65520, 3.14159f}), f16), f32), {kInf, 3.140625});
  expect(cast(vec(f64, {1.00390625 + 1e-12}), bf16), {1.0078125});
  expect(cast(vec(f64, {1.00390625}), bf16), {1.0});
}

TEST(Semantics, Sums) {
  expect(sum(filled(f32, {10000000}, 0.1f)), {1000000.0149}, 2e-7);
  expect(mean(filled(f16, {4000}, 20)), {20});
  const Value small = ints(u8, {1, 200, 255});
  expect(sum(small), {456});
  EXPECT_EQ(run(sum(small)).dtype(), u64);
  expect(mean(small), {152});
  expect(sum(ints(bool_, {1, 1, 0})), {2});
  expect(max(vec(f32, {1, kNan, 2})), {kNan});
  expect(max(vec(f32, {-kInf, -kInf})), {-kInf});
  expect(argmax(vec(f32, {1, kNan, 5, kNan})), {1});
  expect(argmin(vec(f32, {3, 1, 1})), {1});
  expect(sum(filled(f32, {0}, 0)), {0});
  expect(mean(filled(f32, {0}, 0)), {kNan});
  expect(cumsum(vec(f32, {1, 2, 3}), 0, true), {6, 5, 3});
  expect(cumprod(vec(f32, {1, 2, 3}), 0, false, true), {1, 1, 2});
  expect(cummax(vec(i8, {1, 3, 2}), 0, false, true), {-128, 1, 3});
  expect(cummin(vec(f32, {2, kNan, 1}), 0), {2, kNan, kNan});
  expect(var(vec(f32, {1, 2, 3, 4}), std::nullopt, false, 1), {5.0 / 3}, 1e-6);
}

TEST(Semantics, Norms) {
  const Value far = vec(f32, {1e8, 1e8 + 8, 1e8 + 16, 1e8 + 24});
  expect(layer_norm(far, std::nullopt, std::nullopt),
         {-1.3416407, -0.4472136, 0.4472136, 1.3416407}, 1e-5);
  expect(softmax(vec(f32, {1000, 1000})), {0.5, 0.5}, 1e-6);
  expect(logsumexp(vec(f32, {-kInf, -kInf})), {-kInf});
  expect(logsumexp(vec(f32, {1000, 1000})), {1000.6931}, 1e-6);
  expect(rms_norm(vec(f32, {3, 4}), std::nullopt, 0), {0.84852814, 1.1313708}, 1e-6);
}

TEST(Semantics, Slices) {
  const Value x = ints(i32, {0, 1, 2, 3, 4});
  const auto cut = [&](std::optional<Dim> a, std::optional<Dim> b, int64_t step) {
    return slice_axis(x, 0, {a, b, step});
  };
  expect(cut(2, 10, 1), {2, 3, 4});
  expect(cut(2, 1, 1), {});
  expect(cut(-2, std::nullopt, 1), {3, 4});
  expect(cut(std::nullopt, std::nullopt, -2), {4, 2, 0});
  expect(cut(3, 0, -1), {3, 2, 1});
  expect(index(x, 0, -1), {4});
  expect(dynamic_slice(x, {scalar_int(i32, 9)}, {0}, {2}), {3, 4});
  const SliceBound back{std::nullopt, std::nullopt, -2};
  expect(slice_update(x, ints(i32, {7, 8, 9}), std::span(&back, 1)), {9, 1, 8, 3, 7});
  expect(take(x, ints(i64, {-1, 0})), {4, 0});
  expect(flip(x), {4, 3, 2, 1, 0});
  expect(tile(ints(i32, {1, 2}), {2}), {1, 2, 1, 2});
  expect(one_hot(ints(i64, {1, 5}), 3), {0, 1, 0, 0, 0, 0});
  expect(arange(5, 0, -2), {5, 3, 1});
  const Value n = ir::make_parameter({f32, {"n"}}, "x");
  const Value tail = slice_axis(n, 0, {Dim(1), std::nullopt, 1});
  const auto empty_is_empty = [&](int64_t count) {
    return tail.shape()[0].eval([&](std::string_view) { return std::optional<int64_t>(count); });
  };
  EXPECT_EQ(empty_is_empty(0), 0);
  EXPECT_EQ(empty_is_empty(5), 4);
}

TEST(Semantics, AttentionAndRope) {
  const Value q = filled(f32, {4, 3, 2}, 1);
  const Value k = filled(f32, {2, 3, 2}, 1);
  const Value v = reshape(ints(i32, {0, 1, 2, 3, 4, 5}), {2, 3, 1});
  const Value out = attention(q, k, cast(v, f32), {.causal = true});
  expect(out, {0, 0.5, 1, 0, 0.5, 1, 3, 3.5, 4, 3, 3.5, 4}, 1e-6);
  // Queries that see nothing give 0; a window keeps the nearest; a length leaves the rest unread.
  const Value w = reshape(vec(f32, {1, 2, kNan, 4}), {1, 4, 1});
  const auto weigh = [&](const AttentionOptions& options, int64_t queries = 2) {
    return attention(filled(f32, {1, queries, 2}, 1), filled(f32, {1, 4, 2}, 1), w, options);
  };
  const auto keep = [](std::initializer_list<double> at) { return cast(vec(f32, at), bool_); };
  expect(weigh({.mask = keep({1, 1, 0, 0})}), {1.5, 1.5}, 1e-6);
  expect(weigh({.mask = keep({0, 0, 0, 0})}), {0, 0});
  expect(weigh({.mask = vec(f32, {0, 0, -kInf, -kInf})}), {1.5, 1.5}, 1e-6);
  expect(weigh({.causal = true, .length = scalar_int(i32, 2)}, 3), {0, 1, 1.5}, 1e-6);
  expect(weigh({.causal = true, .window = 1, .length = scalar_int(i64, 2)}), {1, 2}, 1e-6);
  expect(weigh({.length = scalar_int(i64, -3)}), {0, 0});
  const Value x = reshape(vec(f32, {1, 0, 1, 0}), {2, 2});
  expect(slice_axis(rope(x, ints(i64, {0, 1})), 0, {Dim(1), std::nullopt, 1}),
         {std::cos(1.0), std::sin(1.0)}, 1e-6);
}

TEST(Semantics, Random) {
  // Threefry-2x32-20 known answers: key 0, counter 0; and all ones.
  const auto words = [](uint32_t key, uint64_t counter) {
    Literal k(u32, {});
    *k.as_mutable<uint32_t>() = key;
    Literal c(u64, {});
    *c.as_mutable<uint64_t>() = counter;
    return *run(threefry(ir::make_constant(k), ir::make_constant(k), ir::make_constant(c)))
                .as<uint64_t>();
  };
  EXPECT_EQ(words(0, 0), 0x99ba4efe6b200159u);
  EXPECT_EQ(words(0xffffffff, ~uint64_t{0}), 0xbb002be71cb996fcu);
  const Value key = random::key(7);
  const Literal normals = run(random::normal(key, {20000}));
  double total = 0;
  double squares = 0;
  for (int64_t i = 0; i < normals.count(); ++i) {
    total += normals.get_double(i);
    squares += normals.get_double(i) * normals.get_double(i);
  }
  EXPECT_NEAR(total / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.04);
  const Literal dice = run(random::randint(key, {6000}, -1, 2));
  int counts[3] = {};
  for (int64_t i = 0; i < dice.count(); ++i) ++counts[dice.get_int(i) + 1];
  for (int c : counts) EXPECT_NEAR(c, 2000, 200);
  EXPECT_FALSE(run(random::split(key)).same(run(random::split(random::key(8)))));
  const Literal picks = run(random::categorical(key, broadcast_to(vec(f32, {0, -kInf}), {50, 2})));
  for (int64_t i = 0; i < picks.count(); ++i) EXPECT_EQ(picks.get_int(i), 0);
}

template <class E, class F>
void refuses(const F& f, const std::string& text) {
  try {
    f();
    FAIL() << "expected: " << text;
  } catch (const E& error) {
    EXPECT_STREQ(error.what(), text.c_str());
  }
}

TEST(Semantics, Errors) {
  const auto param = [](DType d, Shape s) { return ir::make_parameter({d, std::move(s)}, "x"); };
  const auto at = std::make_shared<ir::Location>(ir::Location{"model.cpp", 18, 0, "model.mlp"});
  refuses<ShapeError>(
      [&] {
        matmul(param(f32, {"batch", 64}), param(f32, {32, 10}), at);
      },
      "matmul: last dimension of a (64) and second-last of b (32) differ [matmul_c2]\n"
      "  a: f32[\"batch\", 64]   b: f32[32, 10]\n  at model.cpp:18 in layer model.mlp");
  refuses<TypeError>([&] { exp(param(c64, {2})); },
                     "exp: takes a float dtype, got c64 [exp_dtype]");
  refuses<TypeError>([&] { neg(param(bool_, {2})); },
                     "neg: takes any dtype but bool, got bool [neg_dtype]");
  refuses<ValueError>([&] { sum(param(f32, {2}), std::vector<int64_t>{3}); },
                      "sum: axis 3 for rank 1: must be in -1..0 [sum_axis]");
  refuses<ShapeError>(
      [&] {
        add(param(f32, {2, 3}), param(f32, {4}));
      },
      "add: shapes [2, 3] and [4] do not broadcast: dimensions 3 and 4 differ "
      "[add_broadcast]");
  refuses<ValueError>(
      [&] {
        max(param(f32, {3, 0}), std::vector<int64_t>{1});
      },
      "max: axis 1 of [3, 0] has no elements [max_empty]");
  refuses<IndexError>(
      [&] {
        run(take(ints(i32, {1, 2}), ints(i64, {2})));
      },
      "take: index 2 is outside axis 0 of 2 elements [take_index]");
  refuses<ShapeError>(
      [&] {
        attention(param(f32, {4, 2, 8}), param(f32, {3, 5, 8}), param(f32, {3, 5, 8}));
      },
      "attention: 3 key heads and 3 value heads do not divide 4 query heads [attention_c2]\n"
      "  a: f32[4, 2, 8]   b: f32[3, 5, 8]   c: f32[3, 5, 8]");
  refuses<ShapeError>(
      [&] {
        attention(param(f32, {4, 2, 8}), param(f32, {4, 5, 8}), param(f32, {4, 5, 8}),
                  {.mask = param(f32, {4})});
      },
      "attention: mask f32[4] is not a bool or float that broadcasts to the scores [4, 2, 5] "
      "[attention_c5]\n  a: f32[4, 2, 8]   b: f32[4, 5, 8]   c: f32[4, 5, 8]   d: f32[4]");
  refuses<ValueError>(
      [&] {
        attention(param(f32, {4, 2, 8}), param(f32, {4, 5, 8}), param(f32, {4, 5, 8}),
                  {.window = 0});
      },
      "attention: a window of 0 keys [attention_c7]");
  refuses<ShapeError>([&] { reshape(param(f32, {4}), {3}); },
                      "reshape: 4 elements of [4] do not fill 3 of [3] [reshape_c1]");
}

}  // namespace
}  // namespace tenon::ops
