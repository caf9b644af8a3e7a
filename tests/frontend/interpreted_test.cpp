// Programs that run through the interpreter are checked as compiled ones are.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

class Interpreted : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(setenv("TENON_INTERPRET", "1", 1), 0); }
  void TearDown() override { unsetenv("TENON_INTERPRET"); }
};

TEST_F(Interpreted, NamesAreCompared) {
  const auto sum = compile([](const Tensor& x, const Tensor& y) { return x + y; },
                           {.name = "sum", .argument_names = {"x", "y"}})(TensorLayout(f32, {"n"}),
                                                                          TensorLayout(f32, {"n"}));
  EXPECT_EQ(sum(ones({3}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_TRUE(sum.explain().find("through the interpreter, 3 operations") != std::string::npos)
      << sum.explain();
  EXPECT_EQ(refusal([&] { sum(ones({3}), ones({1})); }),
            "ShapeError: sum: argument y: dim n is 1, but argument x has n = 3 [argument_dim]");
}

TEST_F(Interpreted, WritesStayApart) {
  const auto two = compile(
      [](Tensor x, Tensor y) {
        x += 1;
        y += 1;
      },
      {.name = "two"})(BufferLayout(f32, {2}), BufferLayout(f32, {2}));
  const Tensor x = zeros({2});
  EXPECT_EQ(refusal([&] { two(x, x); }),
            "ValueError: two: writable arguments 0 and 1 share memory [argument_overlap]");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0}));
  const auto donated = compile([](const Tensor& y) { return y * 2; },
                               {.name = "f", .donate = {"0"}})(TensorLayout(f32, {2}));
  EXPECT_EQ(donated((ones({2}) + 0).eval()).to_vector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace tenon
