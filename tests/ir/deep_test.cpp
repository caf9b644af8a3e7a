#include <gtest/gtest.h>

#include <chrono>

#include "sample_ops.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ir/text.h"
#include "tenon/ir/verify.h"

namespace tenon::ir {
namespace {

GraphPtr chain(int length) {
  ir_test::register_sample_ops();
  const Value x = make_parameter(ir_test::tensor(DType::kF32, {4}), "arg0");
  Value y = x;
  for (int i = 0; i < length; ++i) y = make(ir_test::kPlus, {y, y});
  return ir_test::graph_of("chain", {x}, {y});
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void whole_road(int length) {
  const GraphPtr graph = chain(length);
  verify(graph, Stage::kTraced);
  const GraphPtr back = parse(print(graph));
  EXPECT_EQ(canonical(back), canonical(graph));
  const GraphPtr copy = rewrite(back, [](const Node& node, std::span<const Value> operands) {
    return std::optional(std::vector{make(*node.op, {operands.begin(), operands.end()})});
  });
  EXPECT_EQ(count(copy, "t_plus"), length);
}

// Recursion would overflow the stack here; quadratic work would take minutes.
TEST(Deep, ChainOfHundredThousandNodes) {
  const double small = seconds([] { whole_road(10000); });
  const double large = seconds([] { whole_road(100000); });
  EXPECT_LT(large, 40 * small + 1.0);
}

TEST(Deep, ChainOfBodies) {
  ir_test::register_sample_ops();
  GraphPtr body;
  for (int i = 0; i < 2000; ++i) {
    const Value x = make_parameter(ir_test::tensor(DType::kF32, {4}), "arg0");
    const Value y = body == nullptr ? make(ir_test::kPlus, {x, x}) : make_call(body, {x}, "")[0];
    body = ir_test::graph_of(fmt::format("body{}", i), {x}, {y});
  }
  EXPECT_EQ(reachable_graphs(body).size(), 2000u);
  EXPECT_EQ(canonical(parse(print(body))), canonical(body));
}

}  // namespace
}  // namespace tenon::ir
