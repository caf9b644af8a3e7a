#include "tenon/interp/interpreter.h"

#include <gtest/gtest.h>

#include "tenon/ir/text.h"
#include "tenon/ops/registry.h"

namespace tenon::interp {
namespace {

Literal floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  Literal literal(DType::kF32, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i) literal.as_mutable<float>()[i] = values[i];
  return literal;
}

ir::GraphPtr read(const std::string& text) {
  ops::register_all();
  return ir::parse("tn.module {\n" + text + "\n}\n");
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "ran";
}

const char* const kLayers = R"(
  tn.graph @block(%x: tensor<["n"], f32>) -> tensor<["n"], f32> {
    %0 = tn.constant_external "w" relative : tensor<[1], f32>
    %1 = tn.mul %x, %0
    tn.return %1
  }
  tn.graph @f(%x: tensor<["n"], f32>, %c: buffer<["n"], f32>) -> tensor<["n"], f32> {
    %0 = tn.call @block(%x) {prefix = "a."}
    %1 = tn.call @block(%0) {prefix = "b."}
    %2 = tn.add %1, %c
    tn.update %c, %2
    tn.return %1
  })";

TEST(Interpreter, CallsUpdatesExternalsAndSymbols) {
  const ir::GraphPtr graph = read(kLayers);
  const Externals externals = [](const std::string& name) {
    return floats({1}, {name == "a.w" ? 2.0f : 10.0f});
  };
  const std::vector<Literal> arguments{floats({2}, {1, 2}), floats({2}, {5, 5})};
  const std::vector<Literal> out = run(*graph, arguments, externals);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(out[0].same(floats({2}, {20, 40})));
  EXPECT_TRUE(out[1].same(floats({2}, {25, 45})));
}

TEST(Interpreter, Refusals) {
  const ir::GraphPtr graph = read(kLayers);
  const std::vector<Literal> arguments{floats({2}, {1, 2}), floats({3}, {5, 5, 5})};
  EXPECT_EQ(refusal([&] { run(*graph, arguments); }),
            "f: argument c: expected f32[\"n\"], got f32[3] [argument_dim]");
  const std::vector<Literal> right{floats({2}, {1, 2}), floats({2}, {5, 5})};
  EXPECT_EQ(refusal([&] { run(*graph, right); }),
            "the external constant \"a.w\" is not given [external_missing]");
  EXPECT_EQ(refusal([&] {
              run(*graph, right, [](const std::string&) { return floats({2}, {1, 1}); });
            }),
            "the external constant \"a.w\" is f32[2], declared f32[1] [external_type]");
  EXPECT_EQ(refusal([&] { run(*graph, {}); }), "f: expected 2 arguments, got 0 [argument_count]");
}

TEST(Interpreter, OpsOverSymbolicShapesAndEmptyOnes) {
  const ir::GraphPtr graph = read(R"(
  tn.graph @f(%x: tensor<["n", 2], f32>) -> tensor<["n"], f32> {
    %0 = tn.sum %x {axes = [1]} : tensor<["n"], f32>
    tn.return %0
  })");
  const std::vector<Literal> three{floats({3, 2}, {1, 2, 3, 4, 5, 6})};
  EXPECT_TRUE(run(*graph, three)[0].same(floats({3}, {3, 7, 11})));
  const std::vector<Literal> none{floats({0, 2}, {})};
  EXPECT_TRUE(run(*graph, none)[0].same(floats({0}, {})));
}

}  // namespace
}  // namespace tenon::interp
