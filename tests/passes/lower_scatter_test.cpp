// Kernels of scatter and put_along_axis against their evaluation: every mode, lines that are cut
// into blocks of columns, positions of their own, updates computed on the way, memory in place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "module_runner.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::passes_test {
namespace {

using ir::Value;

constexpr uint32_t kSeed = 6;
constexpr std::string_view kModes[] = {"set", "add", "mul", "min", "max"};

Literal random_literal(DType dtype, const std::vector<int64_t>& dims, int64_t below,
                       std::mt19937& random) {
  Literal literal(dtype, dims);
  std::uniform_int_distribution<int64_t> whole(-below, below - 1);
  for (int64_t i = 0; i < literal.count(); ++i) {
    if (is_float(dtype)) {
      literal.set_double(i, static_cast<double>(whole(random)) / 4);
    } else {
      literal.set_int(i, dtype == DType::kBool ? whole(random) & 1 : whole(random));
    }
  }
  return literal;
}

ir::GraphPtr graph_of(std::vector<Value> params, Value result, bool in_place) {
  ir::Graph made;
  made.name = "f";
  made.params = std::move(params);
  for (size_t i = 0; i < made.params.size(); ++i) made.param_names.push_back(fmt::format("p{}", i));
  made.writable.assign(made.params.size(), false);
  if (in_place) {
    made.writable[0] = true;
    made.updates = {{0, result}};
  } else {
    made.results = {result};
  }
  return std::make_shared<const ir::Graph>(std::move(made));
}

passes::Lowered lowered(const ir::GraphPtr& graph) {
  passes::Options options;
  options.verify = true;
  return passes::lower(graph, options);
}

size_t copies(const passes::Lowered& lowered) {
  size_t count = 0;
  for (const abi::Program& program : lowered.module.programs) {
    for (const abi::Step& step : program.steps)
      count += std::holds_alternative<abi::CopyStep>(step);
  }
  return count;
}

void expect_same(const Literal& got, const Literal& wanted) {
  ASSERT_EQ(got.dims(), wanted.dims());
  for (int64_t i = 0; i < got.count(); ++i) {
    if (is_float(got.dtype())) {
      ASSERT_EQ(got.get_double(i), wanted.get_double(i)) << "element " << i;
    } else {
      ASSERT_EQ(got.get_int(i), wanted.get_int(i)) << "element " << i;
    }
  }
}

struct Case {
  std::vector<int64_t> x;
  std::vector<int64_t> indices;
  int64_t axis;
  bool along = false;
};

std::vector<int64_t> updates_of(const Case& c) {
  std::vector<int64_t> dims = c.x;
  const auto at = dims.begin() + c.axis;
  if (c.along) {
    *at = c.indices[static_cast<size_t>(c.axis)];
    return dims;
  }
  return [&] {
    std::vector<int64_t> result(dims.begin(), at);
    result.insert(result.end(), c.indices.begin(), c.indices.end());
    result.insert(result.end(), at + 1, dims.end());
    return result;
  }();
}

Shape shape_of(const std::vector<int64_t>& dims, bool named) {
  Shape shape(dims.begin(), dims.end());
  // Each size has a name of its own, so that equal ones stay equal.
  for (Dim& dim : shape) {
    if (named && dim.value() > 1) dim = Dim(fmt::format("d{}", dim.value()));
  }
  return shape;
}

const std::vector<Case> kCases = {
    {{7}, {20}, 0},
    {{4, 5}, {2, 3}, 0},
    {{6, 70}, {33}, 0},
    {{6, 33}, {9}, 1},
    {{70, 6, 2}, {9}, 1},
    {{3, 6, 5, 7}, {4}, 1},
    {{6, 1}, {8}, 0},
    {{6, 0}, {8}, 0},
    {{6, 16}, {0}, 0},
    {{5, 40}, {}, 0},
    {{5, 40}, {9, 40}, 0, true},
    {{5, 40}, {5, 60}, 1, true},
    {{5, 40}, {1, 60}, 1, true},
    {{3, 8, 20}, {3, 9, 1}, 1, true},
    {{3, 8, 20}, {1, 9, 20}, 1, true},
};

void check(const Case& c, DType dtype, const std::string& mode, bool named, std::mt19937& random) {
  SCOPED_TRACE(fmt::format("{} of {} at {}, axis {}{}{}", mode, describe(dtype, c.x),
                           fmt::join(c.indices, "×"), c.axis, c.along ? ", along" : "",
                           named ? ", named" : ""));
  const std::vector<int64_t> updates = updates_of(c);
  const Value x = ir::make_parameter({dtype, shape_of(c.x, named)}, "x");
  const Value i = ir::make_parameter({DType::kI32, shape_of(c.indices, named)}, "i");
  const Value u = ir::make_parameter({dtype, shape_of(updates, named)}, "u");
  const Value result =
      c.along ? ops::put_along_axis(x, i, u, c.axis, mode) : ops::scatter(x, i, u, c.axis, mode);
  const Literal in[] = {
      random_literal(dtype, c.x, 8, random),
      random_literal(DType::kI32, c.indices, c.x[static_cast<size_t>(c.axis)], random),
      random_literal(dtype, updates, 8, random)};
  for (const bool in_place : {false, true}) {
    const ir::GraphPtr graph = graph_of({x, i, u}, result, in_place);
    expect_same(run_module(lowered(graph), *graph, in)[0], interp::run(*graph, in)[0]);
  }
}

TEST(LowerScatter, EveryModeAndShape) {
  ops::register_all();
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  for (const Case& c : kCases) {
    for (const std::string_view mode : kModes) {
      check(c, DType::kF32, std::string(mode), false, random);
      check(c, DType::kI64, std::string(mode), true, random);
      if (testing::Test::HasFailure()) return;
    }
    for (const DType dtype : {DType::kBool, DType::kU8, DType::kF16, DType::kBF16, DType::kF64}) {
      check(c, dtype, "add", false, random);
      check(c, dtype, "max", true, random);
      if (testing::Test::HasFailure()) return;
    }
  }
}

Value parameter(DType dtype, Shape shape, const std::string& name) {
  return ir::make_parameter({dtype, std::move(shape)}, name);
}

// Updates are computed where they are written, also from what is written into, which then is
// another memory.
TEST(LowerScatter, UpdatesFuse) {
  ops::register_all();
  std::mt19937 random(kSeed);
  const Value x = parameter(DType::kF32, {9, 40}, "x");
  const Value i = parameter(DType::kI64, {5}, "i");
  const Value u = parameter(DType::kF32, {5, 40}, "u");
  const Literal in[] = {random_literal(DType::kF32, {9, 40}, 8, random),
                        random_literal(DType::kI64, {5}, 9, random),
                        random_literal(DType::kF32, {5, 40}, 8, random)};
  const struct {
    Value result;
    size_t copies;  // of a written x
  } cases[] = {
      {ops::scatter(x, i, ops::exp(ops::mul(u, u)), 0), 0},
      {ops::scatter(x, i, ops::scalar(DType::kF32, 1), 0, "add"), 0},
      {ops::scatter(x, i, ops::add(ops::take(x, i), ops::take(x, i)), 0), 2},
      {ops::scatter(ops::scatter(x, i, u, 0), ops::add(i, ops::scalar_int(DType::kI64, -1)), u, 0,
                    "add"),
       0},
  };
  for (const auto& c : cases) {
    const ir::GraphPtr written = graph_of({x, i, u}, c.result, true);
    const passes::Lowered module = lowered(written);
    EXPECT_EQ(copies(module), c.copies) << module.explanation.groups;
    expect_same(run_module(module, *written, in)[0], interp::run(*written, in)[0]);
    const ir::GraphPtr fresh = graph_of({x, i, u}, c.result, false);
    expect_same(run_module(lowered(fresh), *fresh, in)[0], interp::run(*fresh, in)[0]);
  }
}

// Positions outside write nothing: not even an element at the edge.
TEST(LowerScatter, OutsideIsAnError) {
  ops::register_all();
  for (const int64_t index : {int64_t{4}, int64_t{-5}, int64_t{1} << 40}) {
    const Value x = parameter(DType::kF32, {4, 3}, "x");
    const Value i = parameter(DType::kI64, {2}, "i");
    const Value u = parameter(DType::kF32, {2, 3}, "u");
    const ir::GraphPtr graph = graph_of({x, i, u}, ops::scatter(x, i, u), false);
    Literal in[] = {Literal(DType::kF32, {4, 3}), Literal(DType::kI64, {2}),
                    Literal(DType::kF32, {2, 3})};
    in[1].set_int(1, index);
    EXPECT_THROW(run_module(lowered(graph), *graph, in), IndexError);
    EXPECT_THROW(interp::run(*graph, in), IndexError);
  }
}

}  // namespace
}  // namespace tenon::passes_test
