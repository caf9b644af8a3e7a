// Walks the table of ops: every sample of every op, for several sizes of its names, through
// inference, reference evaluation and a kernel of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "tenon/interp/interpreter.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tests/ops/sample_data.h"
#include "tests/ops/single_op_kernel.h"
#include "tests/test_data.h"

namespace tenon::ops {
namespace {

constexpr uint32_t kSeed = 20261;

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
    ASSERT_EQ(difference(op, results[0], run.result), "") << run.text;
  }
}

class OpTable : public ::testing::TestWithParam<const ir::OpDef*> {};

TEST_P(OpTable, SamplesAgree) {
  const ir::OpDef& op = *GetParam();
  std::mt19937 rng(kSeed);
  ASSERT_FALSE(samples_of(op).empty());
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  for (const ir::Sample& sample : samples_of(op)) {
    for (const Sizes& at : sample_sizes()) {
      check_sample(op, sample, at, rng);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpTable, ::testing::ValuesIn(sampled_ops()),
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

// Ops without samples: what passes alone make, of operands that no random numbers give.
TEST(OpTable, EveryOpHasSamples) {
  const std::set<std::string_view> made_by_passes = {"merge_sorted", "qmatmul_exact",
                                                     "qmatmul_int8", "round_rows"};
  const std::vector<const ir::OpDef*> sampled = sampled_ops();
  for (const ir::OpDef* op : ir::all_ops()) {
    const bool leaf = op->is(ir::kStructural) || op == &ir::kConstant;
    const bool has = std::find(sampled.begin(), sampled.end(), op) != sampled.end();
    EXPECT_EQ(has, !leaf && !made_by_passes.contains(op->name)) << op->name;
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

constexpr std::string_view kTableHead =
    "| op | operands | attributes | meaning |\n| --- | --- | --- | --- |\n";

std::string table_text() {
  std::ostringstream out;
  out << kTableHead;
  for (const ir::OpDef* op : ir::all_ops()) {
    out << "| `" << op->name << "` | " << op->min_operands;
    if (op->max_operands < 0) out << "…";
    if (op->max_operands > op->min_operands) out << "–" << op->max_operands;
    out << " | " << attr_text(*op) << " | " << op->doc << " |\n";
  }
  return out.str();
}

// The table is the end of the page.
TEST(OpTable, DocumentIsFresh) {
  register_all();
  const std::string path = source_path("docs/ops.md");
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t begin = text.find(kTableHead);
  ASSERT_NE(begin, std::string::npos);
  if (std::getenv("TENON_UPDATE_GOLDEN") != nullptr) {
    text = text.substr(0, begin) + table_text();
    std::ofstream(path) << text;
  }
  EXPECT_EQ(text.substr(begin), table_text()) << "run the test with TENON_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace tenon::ops
