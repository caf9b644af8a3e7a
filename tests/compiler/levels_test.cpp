// Which levels a module holds code for: no more than its kernels gain from.
#include <gtest/gtest.h>

#include "tenon/compiler/compile.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/quantized.h"
#include "tenon/ops/registry.h"

namespace tenon::compiler {
namespace {

std::vector<std::string> levels_of(const ir::Value& parameter, const ir::Value& result) {
  auto graph = std::make_shared<ir::Graph>();
  graph->name = "f";
  graph->params = {parameter};
  graph->param_names = {"x"};
  graph->writable = {false};
  graph->results = {result};
  Options options;
  options.levels = {"x86-64", "x86-64-v4", "x86-64-v4-dot", "x86-64-v4-amx"};
  std::vector<std::string> levels;
  const Compiled compiled = compile(graph, options);
  for (const abi::Image& image : compiled.module->images) levels.push_back(image.level);
  return levels;
}

TEST(Levels, OnlyThoseThatSomeKernelGainsFrom) {
  ops::register_all();
  const ir::Value x = ir::make_parameter({DType::kF32, {4, 64}}, "x");
  const ir::Value plain = ops::exp(x);
  EXPECT_EQ(levels_of(x, plain), (std::vector<std::string>{"x86-64", "x86-64-v4"}));
  // A kernel of dot products that is not the first, and none of tiles.
  const ir::Value weights = ir::make_constant(Literal(DType::kU8, {32, 40}));
  const ir::Value product = ops::qmatmul("Q4_1", plain, weights, ops::Activations::kInt8);
  EXPECT_EQ(levels_of(x, product),
            (std::vector<std::string>{"x86-64", "x86-64-v4", "x86-64-v4-dot"}));
}

}  // namespace
}  // namespace tenon::compiler
