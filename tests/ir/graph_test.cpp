#include <gtest/gtest.h>

#include "sample_ops.h"

namespace tenon::ir {
namespace {

using ir_test::kPlus;
using ir_test::kTurn;
using ir_test::tensor;

TEST(Graph, InferenceErrorsCarryTheUsersPlace) {
  const auto place = std::make_shared<Location>(Location{"model.cpp", 18, 3, "model.layers.3.mlp"});
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  const Value y = make_parameter(tensor(DType::kF32, {3}), "y");
  try {
    make(kPlus, {x, y}, {}, place);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "t_plus: f32[2] and f32[3] differ [t_plus_c1]\n"
                 "  at model.cpp:18 in layer model.layers.3.mlp");
  }
}

TEST(Graph, AttributesTakeDefaultsAndAreChecked) {
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  EXPECT_EQ(make(kTurn, {x}).node->attrs.i("number"), 1);
  EXPECT_THROW(make(kTurn, {x}, {{"colour", 1}}), InternalError);
  EXPECT_THROW(make(kTurn, {x}, {{"number", 1.5}}), InternalError);
  EXPECT_THROW(make(kPlus, {x}), TypeError);
}

TEST(Graph, NodesInOrderOfCreation) {
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  const Value unused = make(kPlus, {x, x});
  const Value a = make(kTurn, {x});
  const Value b = make(kPlus, {a, x});
  const GraphPtr graph = ir_test::graph_of("f", {x}, {b, a});
  const std::vector<NodePtr> wanted{x.node, a.node, b.node};
  EXPECT_EQ(graph->nodes(), wanted);
}

TEST(Attrs, SortedSetAndCompared) {
  Attrs a{{"b", 1}, {"a", true}};
  EXPECT_EQ(a.items()[0].first, "a");
  EXPECT_EQ(a.i("b"), 1);
  EXPECT_THROW(a.i("a"), InternalError);
  EXPECT_THROW(a.i("c"), InternalError);
  Attrs b{{"a", true}, {"b", 1}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  b.set("b", 1.0);
  EXPECT_NE(a, b);
  EXPECT_FALSE(equal(0.0, -0.0));
  EXPECT_TRUE(equal(std::nan(""), std::nan("")));
}

TEST(Ops, RegistryHoldsTheGraphsOwn) {
  EXPECT_EQ(find_op("call"), &kCall);
  EXPECT_EQ(find_op("constant_external"), &kConstantExternal);
  EXPECT_EQ(find_op("mul_by_nothing"), nullptr);
}

TEST(Ops, CallTakesTheBodysTypes) {
  const Value p = make_parameter(tensor(DType::kF32, {2}), "p");
  const GraphPtr body = ir_test::graph_of("body", {p}, {p, p});
  const Value x = make_parameter(tensor(DType::kF32, {2}), "x");
  EXPECT_EQ(make_call(body, {x}, "").size(), 2u);
  const Value i = make_parameter(tensor(DType::kI32, {2}), "i");
  try {
    make_call(body, {i}, "");
    FAIL();
  } catch (const TypeError& error) {
    EXPECT_STREQ(error.what(),
                 "call: operand 0 of @body is i32[2], the body takes f32[2] [call_c2]");
  }
}

}  // namespace
}  // namespace tenon::ir
