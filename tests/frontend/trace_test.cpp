#include "tenon/frontend/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/subgraph.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

// Every misuse of a traced tensor is told apart (row 9.28).
TEST(Trace, BranchOnATracedValue) {
  int line = 0;
  const std::string text = refusal([&line] {
    stage(
        [&line](const Tensor& x) {
          line = __LINE__ + 1;
          if (x.sum() > 0) return x;
          return x * 2;
        },
        {.name = "step"})(TensorLayout(f32, {2}));
  });
  EXPECT_EQ(text,
            fmt::format("TraceError: branch on a traced value: the tensor bool[] has no value "
                        "while step is traced [trace_branch]\n  at trace_test.cpp:{}\n"
                        "  hint: use where(condition, a, b), which computes both sides",
                        line));
}

TEST(Trace, ReadingAValue) {
  const std::string text = refusal([] {
    stage([](const Tensor& x) { return x * x.item<float>(); },
          {.name = "step"})(TensorLayout(f32, {}));
  });
  EXPECT_EQ(text,
            "TraceError: item: the tensor f32[] has no value while step is traced "
            "[trace_value]\n  at argument 0\n"
            "  hint: return the tensor and read it outside");
}

TEST(Trace, EscapedTensor) {
  Tensor escaped;
  stage([&escaped](const Tensor& x) { return escaped = x + 1; },
        {.name = "step"})(TensorLayout(f32, {2}));
  const std::string text = refusal([&escaped] { escaped * 2; });
  EXPECT_NE(
      text.find("TraceError: mul: the tensor belongs to step, whose tracing has ended, made at "
                "trace_test.cpp:"),
      std::string::npos)
      << text;
  EXPECT_NE(refusal([&escaped] { escaped.eval(); }).find("[trace_escaped]"), std::string::npos);
  EXPECT_NE(refusal([&escaped] {
              stage([&escaped](const Tensor& x) { return x + escaped; })(TensorLayout(f32, {2}));
            }).find("[trace_escaped]"),
            std::string::npos);
}

TEST(Trace, TensorOfAnotherTrace) {
  const std::string text = refusal([] {
    stage(
        [](const Tensor& x) {
          stage([&x](const Tensor& y) { return x + y; }, {.name = "inner"})(TensorLayout(f32, {2}));
          return x;
        },
        {.name = "outer"})(TensorLayout(f32, {2}));
  });
  EXPECT_NE(text.find("the tensor belongs to outer, which is being traced; not to inner"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("hint: pass it as an argument"), std::string::npos);
}

TEST(Trace, TensorOnAnotherThread) {
  std::string text;
  stage(
      [&text](const Tensor& x) {
        std::thread([&] { text = refusal([&] { x + 1; }); }).join();
        return x;
      },
      {.name = "step"})(TensorLayout(f32, {2}));
  EXPECT_NE(text.find("belongs to step, which is being traced; no function is being traced on this "
                      "thread"),
            std::string::npos)
      << text;
}

TEST(Trace, CapturedTensorsAreConstants) {
  std::vector<float> memory{1, 2};
  const Tensor borrowed = Tensor::borrow(memory.data(), f32, {2});
  const Tensor lazy = tensor({1.0f, 1.0f}) * 3;
  const auto program =
      compile([&](const Tensor& x) { return x + borrowed + lazy; })(TensorLayout(f32, {2}));
  EXPECT_EQ(program(tensor({0.0f, 0.0f})).to_vector<float>(), (Floats{4, 5}));
  memory[0] = 100;
  EXPECT_EQ(program(tensor({0.0f, 0.0f})).to_vector<float>(), (Floats{4, 5}));
}

TEST(Trace, OtherProgramsRunInside) {
  const auto inner = compile([](const Tensor& x) { return x * 2; });
  const auto outer = compile([&inner](const Tensor& x) {
    const Tensor known = inner(tensor({10.0f}));  // runs: a constant here
    return inner(x) + known;                      // is traced into this program
  });
  EXPECT_EQ(outer(tensor({1.0f})).item<float>(), 22);
}

TEST(Trace, CompiledProgramOnATracedTensor) {
  const auto inner = compile([](const Tensor& x) { return x * 2; })(TensorLayout(f32, {1}));
  const std::string text =
      refusal([&] { compile([&](const Tensor& x) { return inner(x); })(TensorLayout(f32, {1})); });
  EXPECT_NE(text.find("[argument_type]"), std::string::npos) << text;
  EXPECT_NE(text.find("traced Tensor"), std::string::npos) << text;
}

TEST(Trace, SymbolicSizes) {
  const Dim batch("batch", {.min = 1, .max = 8});
  const auto staged = stage([](const Tensor& x) {
    const Extent n = x.shape()[0];
    EXPECT_TRUE(n >= 1);
    EXPECT_TRUE(n < 9);
    EXPECT_TRUE(n != 0);
    EXPECT_TRUE(2 * n > n);
    EXPECT_TRUE(x.shape()[-1] == 2);
    return reshape(x, {n * 2});
  })(TensorLayout(f32, {batch, 2}));
  EXPECT_EQ(staged.graph()->results[0].shape()[0], Dim("batch") * 2);
}

TEST(Trace, BranchOnASizeThatTheRangeDoesNotDecide) {
  int line = 0;
  const std::string text = refusal([&line] {
    stage(
        [&line](const Tensor& x) {
          line = __LINE__ + 1;
          if (x.shape()[0] == 1) return x;
          return x * 2;
        },
        {.name = "step"})(TensorLayout(f32, {"batch"}));
  });
  EXPECT_EQ(text, fmt::format(
                      "TraceError: branch on the symbolic dimension \"batch\": batch == 1 is not "
                      "decided by its range [0, inf) [trace_branch_dim]\n"
                      "  at trace_test.cpp:{}, while tracing step\n"
                      "  hint: give the range in the layout, as in Dim(\"batch\", {{.min = 1, .max "
                      "= 1}}), or compute both sides and use where",
                      line));
  EXPECT_NE(refusal([] {
              stage([](const Tensor& x) { return x * static_cast<float>(x.shape()[0].value()); })(
                  TensorLayout(f32, {"n"}));
            }).find("[trace_dim_value]"),
            std::string::npos);
}

TEST(Trace, SizesAsOperands) {
  const auto mean =
      compile([](const Tensor& x) { return x.sum() / x.shape()[0]; })(TensorLayout(f32, {"n"}));
  EXPECT_EQ(mean(tensor({1.0f, 2.0f, 6.0f})).item<float>(), 3);
}

TEST(Trace, IteratingASymbolicAxis) {
  const std::string text = refusal([] {
    stage([](const Tensor& x) {
      Tensor total = zeros({});
      for (const Tensor& row : x) total += row;
      return total;
    })(TensorLayout(f32, {"n"}));
  });
  EXPECT_NE(text.find("axis 0 has the size n, which has no number while tracing [iterate_c2]"),
            std::string::npos)
      << text;
}

TEST(Trace, TracedTensorsPrint) {
  stage(
      [](const Tensor& x) {
        EXPECT_EQ(x.str(), "tensor(traced in step, f32[\"n\"])");
        return x;
      },
      {.name = "step"})(TensorLayout(f32, {"n"}));
}

}  // namespace
}  // namespace tenon
