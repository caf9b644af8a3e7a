// Softmax and norms along other axes than the last one: kernels over strips of columns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "module_runner.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ops/composite/nn.h"
#include "tenon/ops/composite/statistics.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::passes_test {
namespace {

using ir::Value;
using Fn = std::function<Value(const Value& x, int64_t axis)>;

struct Work {
  const char* name;
  Fn fn;
};

Value centred_twice(const Value& x, int64_t axis) {
  const Value y = ops::sub(x, ops::max(x, {{axis}}, true));
  return ops::mul(ops::exp(y), ops::sub(y, ops::min(y, {{axis}}, true)));
}

// The exponentials are read at the place of their largest and as they are.
Value beside_the_largest(const Value& x, int64_t axis) {
  const Value e = ops::exp(ops::sub(x, ops::max(x, {{axis}}, true)));
  return ops::add(e, ops::cast(ops::argmax(e, axis, true), e.dtype()));
}

// The walk that reads x for the last time reads another value first, which it keeps.
Value beside_another(const Value& x, int64_t axis) {
  const Value y = ops::tanh(ops::iota(x.shape(), 0, x.dtype()));
  const Value largest = ops::max(x, {{axis}}, true);
  const Value sums = ops::sum(ops::mul(y, x), {{axis}}, true);
  return ops::add(ops::mul(y, sums), largest);
}

// Reversed operands are read at other places than their own.
Value of_flipped(const Value& x, int64_t axis) {
  return ops::add(ops::softmax(ops::flip(x, {{axis}}), axis), x);
}

const Work kWorks[] = {
    {"softmax", [](const Value& x, int64_t axis) { return ops::softmax(x, axis); }},
    {"log_softmax", [](const Value& x, int64_t axis) { return ops::log_softmax(x, axis); }},
    {"layer_norm",
     [](const Value& x, int64_t axis) {
       return ops::layer_norm(x, std::nullopt, std::nullopt, 1e-3, axis);
     }},
    {"rms_norm",
     [](const Value& x, int64_t axis) { return ops::rms_norm(x, std::nullopt, 1e-3, axis); }},
    {"of two reductions", centred_twice},
    {"beside the largest", beside_the_largest},
    {"beside another", beside_another},
    {"of flipped", of_flipped},
};

Literal random_literal(DType dtype, const std::vector<int64_t>& dims, std::mt19937& random) {
  Literal literal(dtype, dims);
  std::uniform_real_distribution<double> real(-4, 4);
  for (int64_t i = 0; i < literal.count(); ++i) literal.set_double(i, real(random));
  return literal;
}

double tolerance(DType dtype) {
  return dtype == DType::kF64   ? 1e-12
         : dtype == DType::kF32 ? 2e-5
         : dtype == DType::kF16 ? 1e-2
                                : 6e-2;
}

passes::Lowered lowered_of(const ir::GraphPtr& graph) {
  passes::Options options;
  options.verify = true;
  return passes::lower(graph, options);
}

void check(const ir::GraphPtr& graph, const Literal& argument) {
  const Literal in[] = {argument};
  const Literal wanted = interp::run(*graph, in)[0];
  const Literal got = run_module(lowered_of(graph), *graph, in)[0];
  ASSERT_EQ(got.dims(), wanted.dims());
  for (int64_t i = 0; i < got.count(); ++i) {
    const double want = wanted.get_double(i);
    ASSERT_NEAR(got.get_double(i), want, tolerance(got.dtype()) * std::max(1.0, std::abs(want)))
        << "element " << i;
  }
}

struct Case {
  Shape shape;
  std::vector<int64_t> dims;
  int64_t axis;
};

const Case kCases[] = {
    {{3, 70}, {3, 70}, 0},
    {{130, 17}, {130, 17}, -2},
    {{2, 65, 3, 7}, {2, 65, 3, 7}, 1},
    {{2, 3, 4, 9}, {2, 3, 4, 9}, -3},
    {{2, 3, 4, 9}, {2, 3, 4, 9}, 0},
    {{1, 5, 1, 33}, {1, 5, 1, 33}, 1},
    {{5, 1, 20}, {5, 1, 20}, 1},
    {{5, 0, 20}, {5, 0, 20}, 0},
    {{6, 9, 1}, {6, 9, 1}, 0},
    {{2, 4, 0}, {2, 4, 0}, 1},
    {{"m", "n"}, {9, 40}, 0},
    {{2, "m", "n"}, {2, 6, 1}, 1},
    {{"k", 7, "n", 2}, {3, 7, 5, 2}, 1},
    {{4, "m", 12}, {4, 0, 12}, 1},
};

TEST(LowerColumns, AgreesWithTheInterpreter) {
  ops::register_all();
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  for (const Work& work : kWorks) {
    for (const Case& c : kCases) {
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        SCOPED_TRACE(fmt::format("{} {} {} axis {}", work.name, name(dtype), str(c.shape), c.axis));
        const Value x = ir::make_parameter({dtype, c.shape}, "x");
        Value result;
        const int64_t axis = c.axis < 0 ? c.axis + static_cast<int64_t>(c.shape.size()) : c.axis;
        const bool empty = c.dims[static_cast<size_t>(axis)] == 0;
        const bool refuses = std::string_view(work.name).starts_with("of two") ||
                             std::string_view(work.name).starts_with("beside");
        if (empty && refuses) continue;
        result = work.fn(x, axis);
        check(graph_of(x, result), random_literal(dtype, c.dims, random));
      }
    }
  }
}

// Wherever lanes are found beside the walk, one kernel does it all.
TEST(LowerColumns, OneKernel) {
  ops::register_all();
  for (const Work& work : kWorks) {
    for (const auto& [shape, axis] :
         std::vector<std::pair<Shape, int64_t>>{{{4096, 4096}, 0},
                                                {{16, 64, 128, 128}, 1},
                                                {{8, 512, 64}, 1},
                                                {{"n", 64, "h", "w"}, 1}}) {
      SCOPED_TRACE(fmt::format("{} {} axis {}", work.name, str(shape), axis));
      const Value x = ir::make_parameter({DType::kF32, shape}, "x");
      EXPECT_EQ(lowered_of(graph_of(x, work.fn(x, axis))).kernels.size(), 1);
    }
  }
}

// Too few, too narrow or too tall columns, and rows, take the ways that they had.
TEST(LowerColumns, LeavesOthersAlone) {
  ops::register_all();
  for (const auto& [shape, axis, kernels] : std::vector<std::tuple<Shape, int64_t, size_t>>{
           {{100000, 64}, 0, 4}, {{64, 100, 3}, 1, 4}, {{16384, 16}, 0, 4}, {{64, 100}, 1, 1}}) {
    SCOPED_TRACE(fmt::format("{} axis {}", str(shape), axis));
    const Value x = ir::make_parameter({DType::kF32, shape}, "x");
    const Value e = ops::exp(ops::sub(x, ops::max(x, {{axis}}, true)));
    const Value y = ops::div(e, ops::sum(e, {{axis}}, true));
    EXPECT_EQ(lowered_of(graph_of(x, y)).kernels.size(), kernels);
  }
}

}  // namespace
}  // namespace tenon::passes_test
