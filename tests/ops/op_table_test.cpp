// Walks the table of ops: every sample of every op, for several sizes of its names, through
// inference, reference evaluation and a kernel of its own.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "tenon/interp/interpreter.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tests/ops/single_op_kernel.h"
#include "tests/test_data.h"

namespace tenon::ops {
namespace {

constexpr uint32_t kSeed = 20261;

const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> all = {{{"n", 4}, {"m", 3}, {"k", 6}},
                                         {{"n", 1}, {"m", 1}, {"k", 1}},
                                         {{"n", 0}, {"m", 0}, {"k", 0}},
                                         {{"n", 19}, {"m", 8}, {"k", 1030}}};
  return all;
}

bool is_math_row(std::string_view name) {
  static const std::map<std::string_view, std::string_view> modes = {
#define TENON_UNARY(NAME, CLASS, RESULT, MODE, ...) {#NAME, #MODE},
#define TENON_BINARY(NAME, CLASS, RESULT, MODE, ...) {#NAME, #MODE},
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY
  };
  auto it = modes.find(name);
  return it != modes.end() && it->second == "kMath";
}

void put_special(Literal& x, int64_t i) {
  static const double floats[] = {std::nan(""), INFINITY, -INFINITY, -0.0, 0.0, 1.0, 1e-42};
  if (is_float(x.dtype())) x.set_double(i, floats[i / 3 % 7]);
  if (!is_integer(x.dtype())) return;
  const int width = static_cast<int>(size_of(x.dtype())) * 8;
  const auto lowest = static_cast<int64_t>(uint64_t{1} << (width - 1));
  const auto highest = static_cast<int64_t>(~uint64_t{0} >> (65 - width));
  const int64_t integers[] = {0, -1, lowest, highest};
  x.set_int(i, integers[i / 3 % 4]);
}

Literal random_literal(DType dtype, std::vector<int64_t> dims, const ir::Sample& sample,
                       bool specials, std::mt19937& rng) {
  Literal x(dtype, std::move(dims));
  const double lo = is_unsigned(dtype) ? std::max(sample.lo, 0.0) : sample.lo;
  std::uniform_real_distribution<double> real(lo, sample.hi);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double v = real(rng);
    if (dtype == DType::kBool) {
      x.set_int(i, static_cast<int64_t>(rng() & 1));
    } else if (is_integer(dtype)) {
      x.set_int(i, static_cast<int64_t>(std::floor(v)));
    } else {
      x.set_double(i, v);
    }
    if (specials && i % 3 == 1) put_special(x, i);
  }
  return x;
}

double spacing(double x, DType dtype) {
  const int digits = dtype == DType::kF16    ? 11
                     : dtype == DType::kBF16 ? 8
                     : dtype == DType::kF32  ? 24
                                             : 53;
  const int smallest = dtype == DType::kF16 ? -14 : dtype == DType::kF64 ? -1022 : -126;
  return std::ldexp(1.0, std::max(std::ilogb(x == 0 ? 1e-320 : x), smallest) - digits + 1);
}

bool adds_up(const ir::OpDef& op) { return op.name == "sum" || op.name.starts_with("matmul"); }

// How far a kernel may be from the reference, in units in the last place of the result.
double tolerance(const ir::OpDef& op, DType result) {
  if (is_math_row(op.name)) return is_half(result) ? 1 : 3;
  const bool sums = adds_up(op) || op.name == "prod";
  return sums ? 8 : 0;
}

// Sums cancel: their error is measured against the size of what was added.
double scale_of(const ir::OpDef& op, double x) {
  return adds_up(op) ? std::max(std::fabs(x), 256.0) : x;
}

::testing::AssertionResult close(const ir::OpDef& op, const Literal& wanted, const Literal& got) {
  for (int64_t i = 0; i < wanted.count(); ++i) {
    if (!is_float(wanted.dtype())) {
      if (wanted.get_int(i) == got.get_int(i)) continue;
      return ::testing::AssertionFailure()
             << "element " << i << ": " << wanted.get_int(i) << ", kernel " << got.get_int(i);
    }
    const double a = wanted.get_double(i);
    const double b = got.get_double(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b && (a != 0 || std::signbit(a) == std::signbit(b))) continue;
    const double allowed = tolerance(op, wanted.dtype());
    if (a == b && allowed > 0) continue;
    const double unit = std::isfinite(a) ? spacing(scale_of(op, a), wanted.dtype()) : 0;
    if (std::fabs(a - b) <= allowed * unit) continue;
    return ::testing::AssertionFailure() << "element " << i << ": " << a << ", kernel " << b;
  }
  return ::testing::AssertionSuccess();
}

bool takes_specials(const ir::OpDef& op) {
  return op.is(ir::kElementwise) || op.name == "max" || op.name == "min" || op.name == "argmax" ||
         op.name == "argmin";
}

std::string describe_case(const ir::OpDef& op, const ir::Node& node, const Sizes& at) {
  std::string text = std::string(op.name) + "(";
  for (const ir::Value& operand : node.operands) text += ir::brief(operand.type()) + " ";
  text += ") -> " + ir::brief(node.types[0]);
  for (const auto& [name, value] : at) text += fmt::format(" {}={}", name, value);
  return text;
}

void check_sample(const ir::OpDef& op, const ir::Sample& sample, const Sizes& at,
                  std::mt19937& rng) {
  std::vector<ir::Value> params;
  std::vector<Literal> operands;
  for (const ir::TensorType& type : sample.in) {
    params.push_back(ir::make_parameter(type, "p" + std::to_string(params.size())));
    operands.push_back(
        random_literal(type.dtype, numbers(type.shape, at), sample, takes_specials(op), rng));
  }
  const ir::NodePtr node = ir::make_node(op, params, sample.attrs);
  SCOPED_TRACE(describe_case(op, *node, at));
  std::vector<Literal> results;
  try {
    results = interp::evaluate(*node, operands, lookup(at));
  } catch (const ValueError&) {
    // Sizes of 0 that the op refuses while it runs (max of nothing, a window that does not fit).
    ASSERT_EQ(at.find("n")->second, 0);
    return;
  }
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].dtype(), node->types[0].dtype);
  ASSERT_EQ(results[0].dims(), numbers(node->types[0].shape, at));
  if (needs_host(*node) || op.lower == nullptr) return;
  for (bool vector : {false, true}) {
    const KernelRun run = run_kernel(node, operands, at, vector);
    ASSERT_EQ(run.status, 0);
    ASSERT_TRUE(close(op, results[0], run.result)) << run.text;
  }
}

class OpTable : public ::testing::TestWithParam<const ir::OpDef*> {};

TEST_P(OpTable, SamplesAgree) {
  const ir::OpDef& op = *GetParam();
  std::mt19937 rng(kSeed);
  ASSERT_NE(op.samples, nullptr);
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  for (const ir::Sample& sample : op.samples()) {
    for (const Sizes& at : sizes()) {
      check_sample(op, sample, at, rng);
      if (HasFatalFailure()) return;
    }
  }
}

std::vector<const ir::OpDef*> table() {
  register_all();
  std::vector<const ir::OpDef*> ops;
  for (const ir::OpDef* op : ir::all_ops()) {
    if (op->samples != nullptr) ops.push_back(op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, OpTable, ::testing::ValuesIn(table()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(OpTable, EveryOpIsComplete) {
  register_all();
  for (const ir::OpDef* op : ir::all_ops()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    if (op->is(ir::kStructural) || op == &ir::kConstant) continue;
    EXPECT_NE(op->eval, nullptr) << op->name;
  }
}

TEST(OpTable, RefusedDtypesAreNamed) {
  register_all();
  for (const ir::OpDef* op : elementwise_ops()) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const ir::TensorType type{static_cast<DType>(i), {2}};
      std::vector<ir::Value> in;
      for (int k = 0; k < op->min_operands; ++k) in.push_back(ir::make_parameter(type, "x"));
      try {
        ir::make(*op, in);
      } catch (const TypeError& error) {
        EXPECT_EQ(error.parts().label, std::string(op->name) + "_dtype");
        EXPECT_NE(error.message().find(name(type.dtype)), std::string::npos) << error.what();
      }
    }
  }
}

// --- docs/ops.md ---

std::string attr_text(const ir::OpDef& op) {
  std::string text;
  for (const ir::AttrSpec& spec : op.attrs) {
    text += (text.empty() ? "" : ", ") + std::string(spec.name) + (spec.required ? "" : "?");
  }
  return text;
}

std::string table_text() {
  std::ostringstream out;
  out << "# Ops\n\nGenerated from the op table by its test (TENON_UPDATE_GOLDEN=1). Functions of "
         "the "
         "same names, and those that are\ncomposed from them, are declared in tenon/ops/ops.h and "
         "tenon/ops/composite/. `?` marks attributes with a default.\n\n"
         "| op | operands | attributes | meaning |\n| --- | --- | --- | --- |\n";
  for (const ir::OpDef* op : ir::all_ops()) {
    out << "| `" << op->name << "` | " << op->min_operands;
    if (op->max_operands < 0) out << "…";
    if (op->max_operands > op->min_operands) out << "–" << op->max_operands;
    out << " | " << attr_text(*op) << " | " << op->doc << " |\n";
  }
  return out.str();
}

TEST(OpTable, DocumentIsFresh) {
  register_all();
  const std::string path = source_path("docs/ops.md");
  if (std::getenv("TENON_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << table_text();
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, table_text()) << "run the test with TENON_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace tenon::ops
