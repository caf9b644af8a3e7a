#include <gtest/gtest.h>

#include "sample_ops.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ir/text.h"
#include "tenon/ir/verify.h"

namespace tenon::ir {
namespace {

using ir_test::kPlus;
using ir_test::kTurn;
using ir_test::tensor;

Value external(const char* name, bool relative) {
  return make(
      kConstantExternal, {},
      {{"name", name}, {"relative", relative}, {"dtype", DType::kF32}, {"shape", Shape{2}}});
}

// Replaces every t_turn by its operand.
GraphPtr drop_turns(const GraphPtr& graph) {
  return rewrite(
      graph,
      [](const Node& node, std::span<const Value> operands) -> std::optional<std::vector<Value>> {
        if (node.op != &kTurn) return std::nullopt;
        return std::vector{operands[0]};
      });
}

TEST(Rewrite, ReplacesAndKeeps) {
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  const Value kept = make(kPlus, {x, x});
  const Value y = make(kPlus, {make(kTurn, {kept}), make(kTurn, {x})});
  const GraphPtr graph = ir_test::graph_of("f", {x}, {y, kept});
  const GraphPtr next = drop_turns(graph);
  EXPECT_EQ(count(next, "t_turn"), 0);
  EXPECT_EQ(next->results[1], kept);
  EXPECT_EQ(next->params, graph->params);
  EXPECT_EQ(drop_turns(next), next);
  EXPECT_NO_THROW(verify(next, Stage::kSimplified));
}

TEST(Rewrite, ModuleRelinksCallsAndRewritesEachBodyOnce) {
  const Value p = make_parameter(tensor(DType::kF32, {2}), "p");
  const GraphPtr body = ir_test::graph_of("body", {p}, {make(kTurn, {p})});
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  const Value y = make_call(body, {make_call(body, {x}, "a.")[0]}, "b.")[0];
  const GraphPtr graph = ir_test::graph_of("f", {x}, {y});
  int calls = 0;
  const GraphPtr next = rewrite_module(graph, [&calls](const GraphPtr& g) {
    ++calls;
    return drop_turns(g);
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(reachable_graphs(next).size(), 2u);
  EXPECT_EQ(count(next, "t_turn"), 0);
  EXPECT_EQ(count(next, "call"), 2);
}

TEST(Rewrite, InliningComposesPrefixes) {
  const Value p = make_parameter(tensor(DType::kF32, {2}), "p");
  const Value w = make(kPlus, {p, external("w", true)});
  const GraphPtr inner =
      ir_test::graph_of("inner", {p}, {make(kPlus, {w, external("tied", false)})});
  const Value q = make_parameter(tensor(DType::kF32, {2}), "q");
  const GraphPtr outer = ir_test::graph_of("outer", {q}, {make_call(inner, {q}, "a.")[0]});

  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  const std::vector<Value> once = inline_graph(*outer, std::vector{x}, "L0.");
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].node->attrs.s("prefix"), "L0.a.");
  const Node& call = *once[0].node;
  const std::vector<Value> twice =
      inline_graph(*call.attrs.get<GraphPtr>("callee"), call.operands, call.attrs.s("prefix"));
  const std::string text = print(ir_test::graph_of("f", {x}, twice));
  EXPECT_NE(text.find("\"L0.a.w\" relative"), std::string::npos) << text;
  EXPECT_NE(text.find("\"tied\" :"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon::ir
