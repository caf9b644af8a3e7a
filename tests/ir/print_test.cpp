#include <gtest/gtest.h>

#include "sample_ops.h"
#include "tenon/ir/text.h"

namespace tenon::ir {
namespace {

using ir_test::kPlus;
using ir_test::kSplit;
using ir_test::kSum;
using ir_test::kTurn;
using ir_test::tensor;

LocationPtr place(int line, std::string layer) {
  return std::make_shared<Location>(Location{"model.cpp", line, 8, std::move(layer)});
}

// A body called twice, a buffer, an external constant, a ranged dimension.
GraphPtr example() {
  ir_test::register_sample_ops();
  const TensorType type = tensor(DType::kF32, {Dim("batch", {.min = 1, .max = 8}), 2});
  const Value b = make_parameter(type, "arg0");
  const Value w =
      make(kConstantExternal, {},
           {{"name", "w"}, {"relative", true}, {"dtype", type.dtype}, {"shape", type.shape}},
           place(3, "block"));
  const GraphPtr block = ir_test::graph_of("block", {b}, {make(kPlus, {b, w}, {}, place(4, ""))});

  Graph graph;
  graph.name = "step";
  graph.params = {make_parameter(type, "x", place(9, "")), make_parameter(type, "p.cache"),
                  make_parameter(tensor(DType::kI32, {}), "odd name")};
  graph.param_names = {"x", "p.cache", "odd name"};
  graph.writable = {false, true, false};
  const Value one = make_call(block, {graph.params[0]}, "layers.0.")[0];
  const Value two = make_call(block, {one}, "", place(12, "model"))[0];
  const NodePtr both = make_node(kSplit, {two});
  const Value sum = make(kSum, {Value{both, 1}});
  graph.updates = {{1, {both, 0}}};
  graph.results = {
      sum, make(kTurn, {graph.params[2]}, {{"axes", std::vector<int64_t>{0, -1}}, {"real", 0.5}})};
  graph.result_names = {"total", "1"};
  return std::make_shared<const Graph>(std::move(graph));
}

TEST(Print, Readable) {
  EXPECT_EQ(print(example()), R"(tn.module {
  tn.graph @block<"batch" in [1, 8]>(%arg0: tensor<["batch", 2], f32>) -> tensor<["batch", 2], f32> {
    %0 = tn.constant_external "w" relative : tensor<["batch", 2], f32>
    %1 = tn.t_plus %arg0, %0
    tn.return %1
  }
  tn.graph @step<"batch" in [1, 8]>(%x: tensor<["batch", 2], f32>, %p.cache: buffer<["batch", 2], f32>, %"odd name": tensor<[], i32>) -> (tensor<[2], f32>, tensor<[], i32>) {
    %0 = tn.call @block(%x) {prefix = "layers.0."}
    %1 = tn.call @block(%0)
    %2, %3 = tn.t_split %1 : (tensor<["batch", 2], f32>, tensor<["batch", 2], f32>)
    %4 = tn.t_sum %3 : tensor<[2], f32>
    %5 = tn.t_turn %"odd name" {real = 0.5, axes = [0, -1]}
    tn.update %p.cache, %2
    tn.return %4, %5 {names = ["total", "1"]}
  }
}
)");
}

TEST(Print, Locations) {
  const std::string text = print(example(), {.locations = true});
  EXPECT_NE(text.find("relative : tensor<[\"batch\", 2], f32> loc(\"block\"(\"model.cpp\":3:8))\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%1 = tn.t_plus %arg0, %0 loc(\"model.cpp\":4:8)\n"), std::string::npos);
  EXPECT_NE(text.find("(%x: tensor<[\"batch\", 2], f32> loc(\"model.cpp\":9:8), "),
            std::string::npos);
}

TEST(Print, Generic) {
  EXPECT_EQ(print(example(), {.generic = true}), R"("tn.module"() ({
  "tn.graph"() <{sym_name = "block", arg_names = ["arg0"], ranges = [["batch", 1, 8, 1]]}> ({
  ^bb0(%arg0: !tn.tensor<["batch", 2], f32>):
    %0 = "tn.constant_external"() {dtype = #tn.dtype<f32>, name = "w", relative = true, shape = #tn.shape<["batch", 2]>} : () -> !tn.tensor<["batch", 2], f32>
    %1 = "tn.t_plus"(%arg0, %0) : (!tn.tensor<["batch", 2], f32>, !tn.tensor<["batch", 2], f32>) -> !tn.tensor<["batch", 2], f32>
    "tn.return"(%1) : (!tn.tensor<["batch", 2], f32>) -> ()
  }) : () -> ()
  "tn.graph"() <{sym_name = "step", arg_names = ["x", "p.cache", "odd name"], ranges = [["batch", 1, 8, 1]]}> ({
  ^bb0(%arg0: !tn.tensor<["batch", 2], f32>, %arg1: !tn.buffer<["batch", 2], f32>, %arg2: !tn.tensor<[], i32>):
    %0 = "tn.call"(%arg0) {callee = @block, prefix = "layers.0."} : (!tn.tensor<["batch", 2], f32>) -> !tn.tensor<["batch", 2], f32>
    %1 = "tn.call"(%0) {callee = @block, prefix = ""} : (!tn.tensor<["batch", 2], f32>) -> !tn.tensor<["batch", 2], f32>
    %2:2 = "tn.t_split"(%1) : (!tn.tensor<["batch", 2], f32>) -> (!tn.tensor<["batch", 2], f32>, !tn.tensor<["batch", 2], f32>)
    %3 = "tn.t_sum"(%2#1) : (!tn.tensor<["batch", 2], f32>) -> !tn.tensor<[2], f32>
    %4 = "tn.t_turn"(%arg2) {axes = array<i64: 0, -1>, dtype = #tn.dtype<f32>, flag = false, number = 1 : i64, real = 0x3FE0000000000000 : f64, shape = #tn.shape<[]>, text = "plain", value = #tn.literal<0.0 : f32>} : (!tn.tensor<[], i32>) -> !tn.tensor<[], i32>
    "tn.update"(%arg1, %2#0) : (!tn.buffer<["batch", 2], f32>, !tn.tensor<["batch", 2], f32>) -> ()
    "tn.return"(%3, %4) {names = ["total", "1"]} : (!tn.tensor<[2], f32>, !tn.tensor<[], i32>) -> ()
  }) : () -> ()
}) : () -> ()
)");
}

TEST(Print, Constants) {
  auto text = [](Literal value) {
    const std::string all = print(ir_test::graph_of("f", {}, {make_constant(std::move(value))}));
    const size_t begin = all.find("tn.constant ") + 12;
    return all.substr(begin, all.find('\n', begin) - begin);
  };
  EXPECT_EQ(text(Literal::scalar(DType::kF32, 2)), "2.0 : f32");
  EXPECT_EQ(text(Literal::scalar(DType::kF64, 1e-300)), "1e-300 : f64");
  EXPECT_EQ(text(Literal::scalar(DType::kF16, 0.1)), "0.099975586 : f16");
  EXPECT_EQ(text(Literal::scalar_int(DType::kU64, 7)), "7 : u64");
  EXPECT_EQ(text(Literal(DType::kBool, {2})), "splat false : tensor<[2], bool>");
  EXPECT_EQ(text(Literal(DType::kC64, {1})), "[(0.0, 0.0)] : tensor<[1], c64>");
  EXPECT_EQ(text(Literal(DType::kF32, {0, 3})), "[] : tensor<[0, 3], f32>");
  Literal count(DType::kI32, {1000});
  for (int i = 0; i < 1000; ++i) count.set_int(i, i);
  EXPECT_EQ(text(count).substr(0, 42), "elided 1000 elements, 0 to 999, digest \"62");
}

TEST(Print, CountsByName) {
  EXPECT_EQ(count(example(), "t_plus"), 1);
  EXPECT_EQ(count(example(), "call"), 2);
  EXPECT_EQ(count(example(), "plus"), 0);
}

TEST(Print, CanonicalLeavesNamesAndLocationsOut) {
  auto make_graph = [](const char* name, const char* param, int line) {
    const Value x = make_parameter(tensor(DType::kF32, {2}), param, place(line, param));
    Graph graph;
    graph.name = name;
    graph.params = {x};
    graph.param_names = {param};
    graph.writable = {false};
    graph.results = {make(kPlus, {x, x}, {}, place(line, ""))};
    return std::make_shared<const Graph>(graph);
  };
  ir_test::register_sample_ops();
  EXPECT_EQ(canonical(make_graph("f", "x", 1)), canonical(make_graph("g", "y", 2)));
}

}  // namespace
}  // namespace tenon::ir
