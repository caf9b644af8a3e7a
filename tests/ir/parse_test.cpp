#include <gtest/gtest.h>

#include "sample_ops.h"
#include "tenon/ir/text.h"

namespace tenon::ir {
namespace {

struct Refusal {
  const char* text;
  const char* message;
};

// Wraps statements over %x: tensor<[2], f32> and %c: buffer<[2], f32>.
std::string graph_with(const std::string& statements) {
  return "tn.module {\ntn.graph @f(%x: tensor<[2], f32>, %c: buffer<[2], f32>) -> tensor<[2], f32> "
         "{\n" +
         statements + "\n}\n}";
}

std::string refusal(const std::string& text) {
  ir_test::register_sample_ops();
  try {
    parse(text);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "read";
}

class Statements : public testing::TestWithParam<Refusal> {};

TEST_P(Statements, AreRefusedWithLineAndColumn) {
  EXPECT_EQ(refusal(graph_with(GetParam().text)), GetParam().message) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Parse, Statements,
    testing::Values(
        Refusal{"tn.return %x", "read"},
        Refusal{"%0 = tn.t_plus %x, %y", "3:20: %y is not defined above"},
        Refusal{"%0 = tn.nothing %x", "3:6: unknown operation tn.nothing"},
        Refusal{"%0 = tn.t_plus %x, %\"0\"", "3:20: %\"0\" is not defined above"},
        Refusal{"%0 = tn.t_plus %x", "3:1: t_plus: takes 2 operands, got 1 [t_plus_operands]"},
        Refusal{"%0 = tn.t_sum %x\n%1 = tn.t_plus %0, %x",
                "4:1: t_plus: f32[] and f32[2] differ [t_plus_c1]"},
        Refusal{"%0, %1 = tn.t_sum %x", "3:1: tn.t_sum has 1 results, 2 are named"},
        Refusal{"%0 = tn.t_sum %x : tensor<[2], f32>",
                "3:1: tn.t_sum gives f32[], the text says f32[2]"},
        Refusal{"%0 = tn.t_turn %x {colour = 1}", "3:20: tn.t_turn has no attribute colour"},
        Refusal{"%0 = tn.t_turn %x {flag = true, flag = true}",
                "3:33: the attribute flag is given twice"},
        Refusal{"%0 = tn.t_turn %x {flag = 1}", "3:27: expected true or false, found '1'"},
        Refusal{"%0 = tn.t_turn %x {number = 99999999999999999999}",
                "3:29: 99999999999999999999 is not a 64-bit integer"},
        Refusal{"%0 = tn.t_turn %x {real = 1e999}", "3:27: 1e999 is not an f64"},
        Refusal{"%0 = tn.t_turn %x {dtype = float32}", "3:28: unknown dtype float32"},
        Refusal{"%x = tn.t_turn %x", "3:1: %x is defined above"},
        Refusal{"%0 = tn.call @g(%x)", "3:14: no graph @g stands above"},
        Refusal{"%0 = tn.constant 300 : u8", "3:18: 300 is not a value of u8"},
        Refusal{"%0 = tn.constant [1, 2] : tensor<[3], i32>",
                "3:18: 2 values for the 3 elements of i32[3]"},
        Refusal{"%0 = tn.constant splat 1 : tensor<[4294967296], i32>",
                "3:18: the constant i32[4294967296] is over 4 GiB"},
        Refusal{"%0 = tn.constant elided 20 elements, 0 to 1, digest \"00\" : tensor<[20], i32>",
                "3:18: this constant was left out when the graph was printed: print it with full "
                "constants"},
        Refusal{"tn.update %x, %x", "3:1: tn.update writes a buffer parameter"},
        Refusal{"tn.update %c, %x\ntn.update %c, %x", "4:1: this buffer is updated above"},
        Refusal{"%0 = tn.t_sum %x\ntn.update %c, %0", "4:1: the buffer is f32[2], the value f32[]"},
        Refusal{"tn.return", "2:10: @f declares 1 results and returns 0"},
        Refusal{"%0 = tn.t_sum %x\ntn.return %0",
                "2:10: result 0 of @f is declared f32[2] and returned as f32[]"},
        Refusal{"tn.return %x {names = [\"a\", \"b\"]}", "2:10: @f returns 1 results and names 2"},
        Refusal{"%0 = tn.t_turn %x {text = \"a", "3:27: the string does not end"},
        Refusal{"%0 = tn.t_turn %x {text = \"\\q\"}", "3:28: unknown escape in a string"},
        Refusal{"%0 = tn.t_turn %x ; tn.return %0", "3:19: unexpected character ';'"},
        Refusal{"%0 = 5", "3:6: expected an operation, found '5'"},
        Refusal{"tn.return %x loc", "3:14: expected '}', found 'loc'"}));

class Modules : public testing::TestWithParam<Refusal> {};

TEST_P(Modules, AreRefusedWithLineAndColumn) {
  EXPECT_EQ(refusal(GetParam().text), GetParam().message) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Parse, Modules,
    testing::Values(
        Refusal{"", "1:1: expected 'tn.module', found the end of the text"},
        Refusal{"tn.module {}", "1:1: the module holds no graph"},
        Refusal{"tn.module {\n  tn.graph @f() {\n    tn.return\n  }\n} x",
                "5:3: expected the end of the text, found 'x'"},
        Refusal{"tn.module {\n  tn.graph @f() { tn.return }\n  tn.graph @f() { tn.return }\n}",
                "3:12: a graph @f stands above"},
        Refusal{"tn.module { tn.graph @f(%x: tensor<[2.5], f32>) { tn.return } }",
                "1:37: 2.5 is not a dimension"},
        Refusal{"tn.module { tn.graph @f(%x: vector<[2], f32>) { tn.return } }",
                "1:29: expected a type, found 'vector'"},
        Refusal{
            "tn.module { tn.graph @f(%x: tensor<[2], f32>, %x: tensor<[2], f32>) { tn.return } }",
            "1:47: %x is defined above"},
        Refusal{"\"tn.module\"() ({\n  \"tn.block\"() : () -> ()\n}) : () -> ()",
                "2:3: expected \"tn.graph\", found \"tn.block\""}));

TEST(Parse, CommentsAndQuotedNames) {
  const GraphPtr graph = parse(
      "// a comment\ntn.module {\n  tn.graph @\"a b\"(%\"0\": tensor<[\"2*n\"], f32>) -> "
      "tensor<[\"2*n\"], f32> { // here\n    tn.return %\"0\"\n  }\n}\n");
  EXPECT_EQ(graph->name, "a b");
  EXPECT_EQ(graph->param_names[0], "0");
  EXPECT_EQ(graph->results[0].shape()[0], 2 * Dim("n"));
}

}  // namespace
}  // namespace tenon::ir
