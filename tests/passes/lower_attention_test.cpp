#include "tenon/passes/lower_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "module_runner.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ops/composite/nn.h"
#include "tenon/ops/registry.h"

namespace tenon::passes_test {
namespace {

using ir::Value;
using ops::AttentionOptions;

constexpr float kInf = std::numeric_limits<float>::infinity();

// What one case is, besides random numbers: shapes with names are bound to `sizes`.
struct Case {
  std::string name;
  Shape q;
  Shape k;
  Shape v;
  bool causal = false;
  std::optional<int64_t> window = std::nullopt;
  std::optional<ir::TensorType> mask = std::nullopt;
  std::optional<Shape> length = std::nullopt;
  DType dtype = DType::kF32;
  DType keys = DType::kF32;
  bool transposed = false;  // keys stand as [… D, N] in memory
  std::map<std::string, int64_t> sizes = {};
};

Literal random_literal(const ir::TensorType& type, const Case& c, std::mt19937& random) {
  std::vector<int64_t> dims;
  for (const Dim& dim : type.shape) {
    dims.push_back(dim.eval([&](std::string_view name) -> std::optional<int64_t> {
      return c.sizes.at(std::string(name));
    }));
  }
  Literal literal(type.dtype, dims);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> whole(-2, 40);
  for (int64_t i = 0; i < literal.count(); ++i) {
    if (type.dtype == DType::kI64) {
      literal.set_int(i, whole(random));
    } else if (type.dtype == DType::kBool) {
      literal.set_int(i, whole(random) % 3 == 0);
    } else {
      literal.set_double(i, normal(random) * 2);
    }
  }
  return literal;
}

struct Program {
  ir::GraphPtr graph;
  std::vector<ir::TensorType> types;
};

Program build(const Case& c) {
  Program program;
  std::vector<Value> parameters;
  const auto parameter = [&](DType dtype, const Shape& shape) {
    program.types.push_back({dtype, shape});
    parameters.push_back(
        ir::make_parameter(program.types.back(), "p" + std::to_string(parameters.size())));
    return parameters.back();
  };
  const Value q = parameter(c.dtype, c.q);
  Shape key_shape = c.k;
  if (c.transposed) std::swap(*(key_shape.end() - 1), *(key_shape.end() - 2));
  Value k = parameter(c.keys, key_shape);
  if (c.transposed) k = ops::swap_axes(k, -1, -2);
  const Value v = parameter(c.keys, c.v);
  AttentionOptions options;
  options.causal = c.causal;
  options.window = c.window;
  if (c.mask) options.mask = parameter(c.mask->dtype, c.mask->shape);
  if (c.length) options.length = parameter(DType::kI64, *c.length);
  const Value out = ops::attention(q, k, v, options);
  ir::Graph graph;
  graph.name = "f";
  for (const Value& parameter : parameters) {
    graph.params.push_back(parameter);
    graph.param_names.push_back(parameter.node->attrs.s("name"));
    graph.writable.push_back(false);
  }
  graph.results = {out};
  program.graph = std::make_shared<const ir::Graph>(std::move(graph));
  return program;
}

std::vector<Literal> arguments(const Program& program, const Case& c) {
  std::mt19937 random(11);
  std::vector<Literal> all;
  for (const ir::TensorType& type : program.types) all.push_back(random_literal(type, c, random));
  if (!c.mask || c.mask->dtype == DType::kBool) return all;
  for (int64_t i = 0; i < all[3].count(); ++i) {
    if (all[3].get_double(i) > 2 && all[3].count() > 1) all[3].set_double(i, -kInf);
  }
  return all;
}

void expect_near(const Literal& wanted, const Literal& got) {
  ASSERT_EQ(wanted.dims(), got.dims());
  const double tolerance = is_half(wanted.dtype())         ? 1e-2
                           : wanted.dtype() == DType::kF64 ? 1e-12
                                                           : 2e-5;
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double a = wanted.get_double(i);
    const double b = got.get_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    ASSERT_NEAR(a, b, tolerance * std::max(1.0, std::abs(a))) << "element " << i;
  }
}

void run_case(const Case& c, const std::function<void(std::vector<Literal>&)>& change = nullptr) {
  SCOPED_TRACE(c.name);
  ops::register_all();
  const Program program = build(c);
  std::vector<Literal> in = arguments(program, c);
  if (change) change(in);
  passes::Lowered lowered = passes::lower(program.graph, {});
  const Literal wanted = interp::run(*program.graph, in)[0];
  expect_near(wanted, run_module(lowered, *program.graph, in)[0]);
  // The form for targets with few registers.
  for (kir::Kernel& kernel : lowered.kernels) {
    if (auto narrow = std::move(kernel.narrow)) kernel = std::move(*narrow);
  }
  expect_near(wanted, run_module(lowered, *program.graph, in)[0]);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {.name = "one tile", .q = {2, 5, 8}, .k = {2, 33, 8}, .v = {2, 33, 4}},
      {.name = "tiles", .q = {1, 27, 3}, .k = {1, 40, 3}, .v = {1, 40, 37}},
      {.name = "blocks of keys", .q = {1, 13, 2}, .k = {1, 530, 2}, .v = {1, 530, 2}},
      {.name = "causal", .q = {2, 30, 4}, .k = {2, 30, 4}, .v = {2, 30, 4}, .causal = true},
      {.name = "causal, more keys",
       .q = {1, 9, 4},
       .k = {1, 300, 4},
       .v = {1, 300, 4},
       .causal = true},
      {.name = "causal, more queries",
       .q = {1, 30, 4},
       .k = {1, 9, 4},
       .v = {1, 9, 4},
       .causal = true},
      {.name = "window", .q = {1, 40, 4}, .k = {1, 40, 4}, .v = {1, 40, 4}, .window = 5},
      {.name = "causal window",
       .q = {1, 16, 4},
       .k = {1, 300, 4},
       .v = {1, 300, 4},
       .causal = true,
       .window = 3},
      {.name = "shared heads",
       .q = {2, 6, 5, 4},
       .k = {2, 2, 11, 4},
       .v = {1, 2, 11, 4},
       .causal = true},
      {.name = "one row", .q = {4, 1, 64}, .k = {4, 290, 64}, .v = {4, 290, 64}},
      {.name = "one row, keys transposed",
       .q = {4, 1, 8},
       .k = {4, 290, 8},
       .v = {4, 290, 64},
       .transposed = true},
      {.name = "keys transposed",
       .q = {1, 15, 8},
       .k = {1, 35, 8},
       .v = {1, 35, 8},
       .transposed = true},
      {.name = "bool mask",
       .q = {2, 9, 4},
       .k = {2, 34, 4},
       .v = {2, 34, 4},
       .mask = ir::TensorType{DType::kBool, {2, 1, 34}}},
      {.name = "float mask",
       .q = {2, 3, 9, 4},
       .k = {2, 1, 34, 4},
       .v = {2, 1, 34, 4},
       .mask = ir::TensorType{DType::kF32, {9, 34}}},
      {.name = "half mask",
       .q = {3, 9, 4},
       .k = {3, 34, 4},
       .v = {3, 34, 4},
       .mask = ir::TensorType{DType::kBF16, {3, 9, 34}}},
      {.name = "length",
       .q = {5, 2, 3, 4},
       .k = {5, 1, 34, 4},
       .v = {5, 1, 34, 4},
       .causal = true,
       .length = Shape{5}},
      {.name = "length of all",
       .q = {3, 1, 4},
       .k = {3, 34, 4},
       .v = {3, 34, 4},
       .length = Shape{}},
      {.name = "names",
       .q = {"b", 4, "m", 8},
       .k = {"b", 2, "n", 8},
       .v = {"b", 2, "n", 5},
       .causal = true,
       .sizes = {{"b", 2}, {"m", 11}, {"n", 45}}},
      {.name = "names of nothing",
       .q = {"b", 4, "m", 8},
       .k = {"b", 2, "n", 8},
       .v = {"b", 2, "n", 5},
       .sizes = {{"b", 2}, {"m", 3}, {"n", 0}}},
      {.name = "named depth",
       .q = {2, 9, "d"},
       .k = {2, 9, "d"},
       .v = {2, 9, "d"},
       .sizes = {{"d", 19}}},
      {.name = "pieces",
       .q = {3, 1, 8},
       .k = {3, 300, 8},
       .v = {3, 300, 64},
       .causal = true,
       .window = 200},
      {.name = "pieces of shared heads",
       .q = {"b", 6, 1, 8},
       .k = {"b", 2, "n", 8},
       .v = {"b", 2, "n", 5},
       .causal = true,
       .length = Shape{"b"},
       .transposed = true,
       .sizes = {{"b", 2}, {"n", 265}}},
      {.name = "pieces with a mask",
       .q = {1, 2, 8},
       .k = {1, "n", 8},
       .v = {1, "n", 64},
       .mask = ir::TensorType{DType::kBool, {2, "n"}},
       .dtype = DType::kF16,
       .keys = DType::kF16,
       .sizes = {{"n", 140}}},
      {.name = "no pieces",
       .q = {1, 2, 8},
       .k = {1, "n", 8},
       .v = {1, "n", 64},
       .sizes = {{"n", 0}}},
      {.name = "f64",
       .q = {2, 9, 4},
       .k = {2, 40, 4},
       .v = {2, 40, 4},
       .causal = true,
       .dtype = DType::kF64,
       .keys = DType::kF64},
      {.name = "half keys", .q = {2, 9, 4}, .k = {2, 40, 4}, .v = {2, 40, 4}, .keys = DType::kF16},
      {.name = "halves",
       .q = {2, 1, 4},
       .k = {2, 40, 4},
       .v = {2, 40, 4},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words",
       .q = {2, 40, 8},
       .k = {2, 150, 8},
       .v = {2, 150, 4},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of odd sizes",
       .q = {1, 7, 33},
       .k = {1, 35, 33},
       .v = {1, 35, 37},
       .causal = true,
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of shared heads",
       .q = {2, 6, 11, 4},
       .k = {2, 2, 70, 4},
       .v = {1, 2, 70, 4},
       .causal = true,
       .window = 9,
       .length = Shape{2},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words, keys transposed",
       .q = {1, 34, 8},
       .k = {1, 130, 8},
       .v = {1, 130, 8},
       .dtype = DType::kBF16,
       .keys = DType::kBF16,
       .transposed = true},
      {.name = "words of names",
       .q = {"b", 4, "m", 8},
       .k = {"b", 2, "n", 8},
       .v = {"b", 2, "n", 5},
       .causal = true,
       .dtype = DType::kBF16,
       .keys = DType::kBF16,
       .sizes = {{"b", 2}, {"m", 11}, {"n", 45}}},
      {.name = "words of a bool mask",
       .q = {2, 9, 8},
       .k = {2, 34, 8},
       .v = {2, 34, 8},
       .mask = ir::TensorType{DType::kBool, {9, 34}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask",
       .q = {2, 40, 8},
       .k = {2, 150, 8},
       .v = {2, 150, 4},
       .mask = ir::TensorType{DType::kBF16, {2, 40, 150}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask and a window",
       .q = {2, 40, 8},
       .k = {2, 150, 8},
       .v = {2, 150, 4},
       .causal = true,
       .window = 40,
       .mask = ir::TensorType{DType::kF32, {40, 150}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a bool mask, a window and a length",
       .q = {2, 4, 20, 8},
       .k = {2, 2, 70, 8},
       .v = {2, 2, 70, 4},
       .window = 9,
       .mask = ir::TensorType{DType::kBool, {2, 1, 20, 70}},
       .length = Shape{2},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask for each head",
       .q = {4, 20, 8},
       .k = {2, 70, 8},
       .v = {2, 70, 4},
       .mask = ir::TensorType{DType::kF32, {4, 1, 70}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask for each batch",
       .q = {3, 2, 40, 8},
       .k = {3, 1, 70, 8},
       .v = {3, 1, 70, 4},
       .causal = true,
       .mask = ir::TensorType{DType::kF16, {3, 1, 1, 70}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a bool mask for each batch",
       .q = {3, 2, 40, 8},
       .k = {3, 2, 70, 8},
       .v = {3, 2, 70, 4},
       .mask = ir::TensorType{DType::kBool, {3, 1, 1, 70}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a bool mask for each query",
       .q = {2, 40, 8},
       .k = {2, 70, 8},
       .v = {2, 70, 4},
       .mask = ir::TensorType{DType::kBool, {2, 40, 1}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask of one number",
       .q = {1, 9, 8},
       .k = {1, 34, 8},
       .v = {1, 34, 8},
       .mask = ir::TensorType{DType::kF64, {}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16},
      {.name = "words of a mask of names",
       .q = {"b", 4, "m", 8},
       .k = {"b", 2, "n", 8},
       .v = {"b", 2, "n", 5},
       .causal = true,
       .mask = ir::TensorType{DType::kBF16, {"b", 1, "m", "n"}},
       .dtype = DType::kBF16,
       .keys = DType::kBF16,
       .sizes = {{"b", 2}, {"m", 11}, {"n", 45}}},
      {.name = "no keys", .q = {2, 9, 4}, .k = {2, 0, 4}, .v = {2, 0, 4}},
      {.name = "no queries", .q = {2, 0, 4}, .k = {2, 3, 4}, .v = {2, 3, 4}},
      {.name = "no depth", .q = {2, 3, 0}, .k = {2, 3, 0}, .v = {2, 3, 4}},
      {.name = "no columns", .q = {2, 3, 4}, .k = {2, 3, 4}, .v = {2, 3, 0}},
  };
  return all;
}

class LowerAttention : public ::testing::TestWithParam<size_t> {};

TEST_P(LowerAttention, AsTheInterpreter) { run_case(cases()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, LowerAttention, ::testing::Range(size_t{0}, cases().size()));

// What a query does not see takes no part, whatever it is.
TEST(LowerAttentionValues, UnseenValuesStayOut) {
  for (const Case& c : cases()) {
    if (!c.causal && !c.length && !c.mask) continue;
    if (!c.sizes.empty() || c.transposed) continue;
    run_case(c, [](std::vector<Literal>& in) {
      const int64_t columns = in[2].dims().back();
      const int64_t keys = *(in[2].dims().end() - 2);
      for (int64_t at : {keys - 1, keys / 2}) {
        in[2].set_double(at * columns, NAN);
        in[2].set_double(at * columns + 1, kInf);
      }
    });
  }
}

double lowest_of(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::lowest();
  return dtype == DType::kBF16 ? -0x1.fep127 : std::numeric_limits<float>::lowest();
}

// Rows that a mask takes all keys from, by false, -inf, or numbers so low that no score counts
// beside them.
TEST(LowerAttentionValues, WhollyMaskedRows) {
  constexpr int64_t kQueries = 40, kKeys = 70;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const DType mask : {DType::kBool, DType::kBF16, DType::kF32, DType::kF64}) {
      const Case c{.name = std::string(name(mask)),
                   .q = {2, kQueries, 8},
                   .k = {2, kKeys, 8},
                   .v = {2, kKeys, 4},
                   .causal = mask == DType::kF32,
                   .mask = ir::TensorType{mask, {kQueries, kKeys}},
                   .dtype = dtype,
                   .keys = dtype};
      run_case(c, [&](std::vector<Literal>& in) {
        for (const int64_t row : {0, 13, 39}) {
          const bool lowest = row == 13 && mask != DType::kBool;
          const double value = mask == DType::kBool ? 0 : lowest ? lowest_of(mask) : -kInf;
          for (int64_t t = 0; t < kKeys; ++t) in[3].set_double(row * kKeys + t, value);
        }
      });
    }
  }
}

// Keys that a bool mask hides may hold anything; what is added to a score of NaN is NaN.
TEST(LowerAttentionValues, HiddenKeys) {
  const Case c{.name = "hidden",
               .q = {1, 9, 8},
               .k = {1, 70, 8},
               .v = {1, 70, 4},
               .mask = ir::TensorType{DType::kBool, {1, 70}},
               .dtype = DType::kBF16,
               .keys = DType::kBF16};
  run_case(c, [](std::vector<Literal>& in) {
    in[3].set_int(66, 0);
    in[1].set_double(8 * 66, NAN);
    in[1].set_double(8 * 66 + 1, kInf);
    in[2].set_double(4 * 66, kInf);
  });
}

// The three parts of a weight hide nothing: a value of infinity stays one.
TEST(LowerAttentionValues, InfiniteValuesInWords) {
  const Case c{.name = "words",
               .q = {1, 9, 8},
               .k = {1, 70, 8},
               .v = {1, 70, 4},
               .dtype = DType::kBF16,
               .keys = DType::kBF16};
  run_case(c, [](std::vector<Literal>& in) {
    in[2].set_double(4 * 66, kInf);
    in[2].set_double(4 * 5 + 1, NAN);
  });
}

// Scores that rise by a few powers of two from block to block, by many, and that fall, down to
// weights too small for an f32 number.
TEST(LowerAttentionValues, ScoresGrow) {
  for (const double step : {0.01, 0.06, -0.06, -0.15}) {
    for (const int64_t queries : {1, 13}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        const Case c{.name = "growing",
                     .q = {8, queries, 2},
                     .k = {8, 530, 2},
                     .v = {8, 530, 3},
                     .dtype = dtype,
                     .keys = dtype};
        run_case(c, [step](std::vector<Literal>& in) {
          for (int64_t i = 0; i < in[0].count(); ++i) in[0].set_double(i, 1);
          for (int64_t i = 0; i < in[1].count(); ++i) {
            in[1].set_double(i, step * static_cast<double>(i / 2 % 530));
          }
        });
      }
    }
  }
}

// Infinite scores are NaN results, in every block.
TEST(LowerAttentionValues, InfiniteScores) {
  for (const int64_t at : {3, 300}) {
    const Case c{.name = "infinite", .q = {1, 7, 2}, .k = {1, 530, 2}, .v = {1, 530, 3}};
    run_case(c, [at](std::vector<Literal>& in) { in[1].set_double(2 * at, kInf); });
    run_case(c, [at](std::vector<Literal>& in) { in[1].set_double(2 * at, NAN); });
  }
}

}  // namespace
}  // namespace tenon::passes_test
