#include <gtest/gtest.h>

#include "sample_ops.h"
#include "tenon/ir/verify.h"

namespace tenon::ir {
namespace {

using ir_test::kPlus;
using ir_test::tensor;

std::string refusal(const Graph& graph, Stage stage = Stage::kTraced) {
  try {
    verify(std::make_shared<const Graph>(graph), stage);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "right";
}

struct Verify : testing::Test {
  Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  Value y = make_parameter(tensor(DType::kI32, {3}), "y");
  Graph graph{.name = "f",
              .params = {x, y},
              .param_names = {"x", "y"},
              .writable = {false, true},
              .results = {make(kPlus, {x, x})},
              .updates = {{1, make(kPlus, {y, y})}},
              .result_names = {}};
};

TEST_F(Verify, RightGraph) { EXPECT_EQ(refusal(graph, Stage::kSimplified), "right"); }

TEST_F(Verify, Boundary) {
  Graph names = graph;
  names.param_names = {"x", "x"};
  EXPECT_EQ(refusal(names), "verify: @f: two parameters are named x");
  names.param_names = {"x"};
  EXPECT_EQ(refusal(names), "verify: @f: 2 parameters, 1 names, 2 writable flags");
  Graph twice = graph;
  twice.params = {x, x};
  EXPECT_EQ(refusal(twice), "verify: @f: parameter y stands twice");
  Graph results = graph;
  results.result_names = {"a", "b"};
  EXPECT_EQ(refusal(results), "verify: @f: 1 results, 2 names");
  Graph not_param = graph;
  not_param.params[0] = graph.results[0];
  EXPECT_EQ(refusal(not_param), "verify: @f: parameter x is not a tn.parameter");
}

TEST_F(Verify, Updates) {
  Graph g = graph;
  g.writable = {false, false};
  EXPECT_EQ(refusal(g), "verify: @f: update 0 writes no writable parameter");
  g.writable = {true, true};
  g.updates = {{1, graph.updates[0].value}, {0, graph.results[0]}};
  EXPECT_EQ(refusal(g), "verify: @f: updates are not sorted by parameter, each once");
  g.updates = {{0, y}};
  EXPECT_EQ(refusal(g), "verify: @f: update of x is i32[3], the parameter f32[2]");
}

TEST_F(Verify, Nodes) {
  Graph foreign = graph;
  foreign.params = {x};
  foreign.param_names = {"x"};
  foreign.writable = {false};
  foreign.updates = {};
  foreign.results = {graph.updates[0].value};
  EXPECT_EQ(refusal(foreign), "verify: @f: tn.parameter: y is a parameter of another graph");

  auto node = std::make_shared<Node>(*graph.results[0].node);
  node->types[0].dtype = DType::kF64;
  Graph wrong = graph;
  wrong.results = {{node, 0}};
  EXPECT_EQ(refusal(wrong), "verify: @f: tn.t_plus: the result types are not those of infer()");

  auto young = std::make_shared<Node>(*graph.results[0].node);
  young->id = 0;
  wrong.results = {{young, 0}};
  EXPECT_EQ(refusal(wrong), "verify: @f: tn.t_plus: an operand is younger than its user");
}

TEST_F(Verify, SimplifiedHoldsNoWorkTwice) {
  graph.results.push_back(make(kPlus, {x, x}));
  EXPECT_EQ(refusal(graph), "right");
  EXPECT_EQ(refusal(graph, Stage::kSimplified),
            "verify: @f: tn.t_plus: the same work stands above");
}

TEST_F(Verify, BodiesHaveNamesOfTheirOwn) {
  const Value p = make_parameter(tensor(DType::kF32, {2}), "p");
  graph.results = make_call(ir_test::graph_of("f", {p}, {p}), {x}, "");
  EXPECT_EQ(refusal(graph), "verify: @f: two graphs have this name");
}

}  // namespace
}  // namespace tenon::ir
