// Mistakes at a program's boundary, one row each: the whole text of the refusal, with lines masked.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <type_traits>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/subgraph.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

using L = TensorLayout;
using Map = std::map<std::string, Tensor>;

std::string refused(const std::function<void()>& work) {
  return std::regex_replace(refusal(work), std::regex("(boundary_test.cpp):[0-9]+"), "$1:N");
}

Tensor same(const Tensor& x) { return x + 0; }

TEST(Boundary, Declarations) {
  EXPECT_EQ(refused([] {
              L(f32, {3, -2});
            }),
            "ValueError: TensorLayout: dimension 1 is -2, sizes are not negative [layout_c1]\n"
            "  at boundary_test.cpp:N\n"
            "  hint: a size that varies has a name: \"n\"");
  EXPECT_EQ(refused([] { L("float33", {2}); }),
            "ValueError: TensorLayout: unknown dtype \"float33\" [layout_c2]\n"
            "  hint: the dtypes are bool, i8 to i64, u8 to u64, f16, bf16, f32, f64, c64");
  EXPECT_EQ(L("float32", {2}), L(f32, {2}));
  EXPECT_EQ(refused([] {
              L(f32, {int64_t{1} << 61, "n"});
            }),
            "ValueError: TensorLayout: f32[2305843009213693952, \"n\"] has more than 2^62 bytes "
            "[layout_c3]\n"
            "  at boundary_test.cpp:N");
  // Nothing is small.
  EXPECT_EQ(L(f32, {int64_t{1} << 61, 0, int64_t{1} << 61}).shape()[1], Dim(0));
  EXPECT_EQ(refused([] { L(f32, {"2x"}); }),
            "ValueError: dim: \"2x\" is not a name [dim_name]\n"
            "  hint: a name has letters, digits and _; Dim::parse reads expressions");
  EXPECT_EQ(refused([] { Device("gpu"); }),
            "UnsupportedError: Device: no GPU found: this build runs on the CPU [device_c1]\n"
            "  hint: use tenon::cpu()");
  EXPECT_EQ(refused([] { cpu(1); }),
            "ValueError: Device: cpu(1) does not exist: there is one CPU, cpu(0) [device_c3]");
  EXPECT_FALSE(L(f32, {2}) == BufferLayout(f32, {2}));
  EXPECT_EQ(refused([] { compile(same)(L(f32, {Dim("n") * Dim("n")})); }),
            "ValueError: same: the name n is the size of no argument's dimension, it only stands "
            "in n*n of argument 0 [argument_symbol]\n"
            "  hint: give one argument a dimension that is the bare name");
}

TEST(Boundary, Names) {
  const auto sum =
      compile([](const Tensor& x, const Tensor& y) { return x + y; },
              {.name = "sum", .argument_names = {"x", "y"}})(L(f32, {"n"}), L(f32, {"n"}));
  EXPECT_EQ(sum(zeros({0}), zeros({0})).dims(), std::vector<int64_t>{0});
  EXPECT_EQ(sum(zeros({1}), zeros({1})).dims(), std::vector<int64_t>{1});
  EXPECT_EQ(refused([&] { sum(zeros({3}), zeros({1})); }),
            "ShapeError: sum: argument y: dim n is 1, but argument x has n = 3 [argument_dim]");
  const auto square = compile(same)(L(f32, {"n", "n"}));
  EXPECT_EQ(refused([&] {
              square(zeros({2, 3}));
            }),
            "ShapeError: same: argument 0: dim n is 3, but its dimension 0 has n = 2 "
            "[argument_dim]");
  const auto ranged = compile(same)(L(f32, {Dim("n", {.min = 2, .max = 8, .divisor = 2})}));
  EXPECT_EQ(refused([&] { ranged(zeros({10})); }),
            "ShapeError: same: argument 0: dim n is 10, outside its range [2, 8] "
            "[argument_range]");
  EXPECT_EQ(refused([&] { ranged(zeros({5})); }),
            "ShapeError: same: argument 0: dim n is 5, not a multiple of 2 [argument_range]");
  const auto doubled = compile([](const Tensor& x, const Tensor& y) { return x.sum() + y; },
                               {.name = "f"})(L(f32, {"n"}), L(f32, {Dim("n") * 2}));
  EXPECT_EQ(refused([&] { doubled(zeros({2}), zeros({5})); }),
            "ShapeError: f: argument 1: dim 0 is 5, expected 2*n = 4 for n = 2 [argument_dim]");
}

TEST(Boundary, Statics) {
  const auto f = compile([](const Tensor& x, const std::vector<int>& v) { return x + v.size(); },
                         {.name = "f", .argument_names = {"x", "v"}})(L(f32, {1}),
                                                                      std::vector<int>(100000, 1));
  std::vector<int> other(100000, 1);
  other[77777] = 2;
  EXPECT_EQ(refused([&] { f(zeros({1}), other); }),
            "ValueError: f: argument v.77777: compiled for 1, got 2 [argument_static]\n"
            "  hint: a value that is not a tensor is part of the program: compile again for "
            "another one");
  const auto pair = compile([](const Tensor& x, std::pair<int, int>) { return x; }, {.name = "f"})(
      L(f32, {1}), std::pair(1, 2));
  EXPECT_EQ(refused([&] {
              pair(zeros({1}), std::vector<int>{1, 2});
            }),
            "ValueError: f: argument 1: tree structure mismatch: expected a tuple of 2, got a list "
            "of 2 [argument_tree]");
  const auto scale = compile([](const Tensor& x, float k) { return x * k; }, {.name = "f"})(
      L(f32, {1}), std::nanf(""));
  EXPECT_TRUE(std::isnan(scale(ones({1}), std::nanf("")).item<float>()));
  EXPECT_NE(refused([&] { scale(ones({1}), -0.0f); }).find("compiled for nan, got -0.0"),
            std::string::npos);
  EXPECT_EQ(refused([] {
              compile([](const Map&, const Tensor& y) { return y; },
                      {.name = "f", .argument_names = {"a", "a.b"}})
                  .with(Map{{"b", L(f32, {1})}}, L(f32, {1}));
            }),
            "ValueError: f: two arguments are both called a.b [argument_route]\n"
            "  hint: rename a key that holds a dot");
}

TEST(Boundary, Tensors) {
  const auto f = compile(same)(L(f32, {2}));
  EXPECT_EQ(refused([&] { f(Tensor()); }),
            "TypeError: same: argument 0: expected a Tensor, got Tensor without a value "
            "[argument_type]\n"
            "  hint: give it a value first");
  EXPECT_EQ(refused([&] { f(Tensor(L(f32, {2}))); }),
            "TypeError: same: argument 0: expected a Tensor, got TensorLayout [argument_type]\n"
            "  hint: a call takes values; compile(fn) takes declarations");
  EXPECT_EQ(refused([&] { compile([&](const Tensor& x) { return f(x); })(L(f32, {2})); }),
            "TypeError: same: argument 0: expected a Tensor, got traced Tensor [argument_type]\n"
            "  hint: inside another function call the function itself");
  EXPECT_EQ(refused([&] {
              f.execute_raw({zeros({5, 3}).array()});
            }),
            "ShapeError: same: argument 0: expected f32[2], got f32[5, 3]: 1 dimensions, got 2 "
            "[argument_rank]\n"
            "  at boundary_test.cpp:N, where it is declared");
  EXPECT_EQ(refused([] { compile(same)(Tensor()); }),
            "TypeError: same: argument 0: the tensor has no value [operand_c1]");
}

TEST(Boundary, Buffers) {
  const auto add_one = compile([](Tensor x) { x += 1; }, {.name = "add_one"});
  const auto one = add_one(BufferLayout(f32, {2}));
  float memory[2] = {};
  EXPECT_EQ(refused([&] { one(Tensor::borrow(memory, f32, {2}, nullptr, false)); }),
            "ValueError: add_one: argument 0: the program writes it, and its memory is read-only "
            "[argument_writable]\n"
            "  at boundary_test.cpp:N, where it is declared\n"
            "  hint: pass a copy");
  EXPECT_EQ(refused([&] { one(zeros({2}, f64)); }),
            "ValueError: add_one: argument 0: expected f32[2], got f64[2] [argument_dtype]\n"
            "  at boundary_test.cpp:N, where it is declared");
  const auto two = compile(
      [](Tensor x, Tensor y) {
        x += 1;
        y += 1;
      },
      {.name = "two"})(BufferLayout(f32, {2}), BufferLayout(f32, {2}));
  const Tensor x = zeros({2});
  EXPECT_EQ(refused([&] { two(x, x); }),
            "ValueError: two: writable arguments 0 and 1 share memory [argument_overlap]");
}

TEST(Boundary, Weights) {
  const auto program = [](const Weights& weights) {
    compile([](const Tensor& x) { return x + constant_external("w", L(f32, {2})); },
            {.name = "net", .weights = weights})(L(f32, {2}));
  };
  EXPECT_EQ(refused([&] {
              program({{"w", L(f32, {2})}});
            }),
            "TypeError: net: weight w: expected a value, got a declaration [weight_value]");
  EXPECT_EQ(refused([&] {
              program({{"w", Tensor()}});
            }),
            "TypeError: net: weight w: expected a value, got a tensor without a value "
            "[weight_value]");
  EXPECT_EQ(refused([] {
              compile([](const Tensor& x) {
                return x + constant_external("w", BufferLayout(f32, {2}));
              })(L(f32, {2}));
            }),
            "TypeError: constant_external: \"w\" is declared as a buffer: weights are read only "
            "[external_c3]\n"
            "  at boundary_test.cpp:N");
}

TEST(Boundary, Tracing) {
  EXPECT_EQ(refused([] {
              stage([](const Tensor& x) {
                Tensor total = zeros({});
                for (const Tensor& row : x) total += row;
                return total;
              })(L(f32, {"n"}));
            }),
            "TraceError: iteration: axis 0 has the size n, which has no number while tracing "
            "[iterate_c2]\n"
            "  at boundary_test.cpp:N\n"
            "  hint: use ops over the axis (sum, cumsum, …), or declare its size as a number");
  const auto masked = [](const Tensor& x) { return Tensor(x[x > 1]); };
  const std::string mask =
      "UnsupportedError: index: a boolean mask is not supported: the size of its result is known "
      "only when it runs [index_c5]\n"
      "  at boundary_test.cpp:N\n"
      "  hint: use where(mask, x, y)";
  EXPECT_EQ(refused([&] { stage(masked)(L(f32, {4})); }), mask);
  EXPECT_EQ(refused([&] { masked(arange(4, f32)); }), mask);
  static_assert(!std::is_invocable_v<StagedGraph<Tensor>, Tensor>);
}

TEST(Boundary, Saving) {
  const auto f = compile([](const Tensor& x) { return x; }, {.name = "f"})(L(f32, {2}));
  EXPECT_EQ(refused([&] { f.save("/nonexistent/dir/x.tenon"); }),
            "IoError: /nonexistent/dir/x.tenon: cannot create a temporary file beside it: No such "
            "file or directory");
  EXPECT_EQ(
      refused([&] { f.save(::testing::TempDir() + "unknown_level.tenon", {"sparc"}); }),
      "ValueError: compile: unknown level 'sparc'\n"
      "  hint: levels are x86-64, x86-64-v3, x86-64-v4, x86-64-v4-dot, x86-64-v4-amx and aarch64");
}

// c64 has copies, arithmetic and comparison for equality, by their reference evaluation; everything
// else is refused while tracing, naming op and dtype.
TEST(Boundary, Complex) {
  const auto f = compile([](const Tensor& x) { return (x * x + x).cast(f32) * 2; },
                         {.name = "f"})(L(c64, {"n"}));
  EXPECT_EQ(f(full({3}, 3.0f).cast(c64)).to_vector<float>(), (std::vector<float>{24, 24, 24}));
  const std::string text = f.explain();
  EXPECT_NE(text.find("  eval  mul   by its reference evaluation, 1 thread\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("mul has no kernel and runs through its reference evaluation"),
            std::string::npos);
  EXPECT_EQ(refused([] { stage([](const Tensor& x) { return exp(x); })(L(c64, {2})); }),
            "TypeError: exp: takes a float dtype, got c64 [exp_dtype]\n"
            "  at boundary_test.cpp:N");
  EXPECT_EQ(refused([] { stage([](const Tensor& x) { return x.sum(); })(L(c64, {2})); }),
            "TypeError: sum: takes a real dtype, got c64 [sum_dtype]\n"
            "  at boundary_test.cpp:N");
}

}  // namespace
}  // namespace tenon
