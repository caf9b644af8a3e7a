#include "tenon/frontend/recompile.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

auto scale() {
  return compile([](const Tensor& x, float gain) { return x * gain; },
                 {.name = "step", .argument_names = {"x", "gain"}});
}
const int kScaleLine = __LINE__ - 3;

TEST(Recompile, AMissSaysWhyInOneLine) {
  const auto step = scale();
  const std::string place = fmt::format(", compiled at recompile_test.cpp:{}", kScaleLine);
  step(zeros({4}), 2.0f);
  EXPECT_EQ(step.last_miss(), "");
  step(zeros({4}), 2.0f);
  EXPECT_EQ(step.last_miss(), "");
  step(zeros({5}), 2.0f);
  EXPECT_EQ(step.last_miss(),
            "step: argument x: expected f32[4], got f32[5]: dimension 0 is 4, got 5 "
            "[argument_dim]" +
                place);
  step(zeros({5}), 3.0f);
  EXPECT_EQ(step.last_miss(),
            "step: argument gain: compiled for 2.0, got 3.0 [argument_static]" + place);
  step(zeros({5}, f64), 3.0f);
  EXPECT_EQ(step.last_miss(),
            "step: argument x: expected f32[5], got f64[5] [argument_dtype]" + place);
  step(zeros({5, 1}, f64), 3.0f);
  EXPECT_EQ(step.last_miss(),
            "step: argument x: expected f64[5], got f64[5, 1]: 1 dimensions, got 2 "
            "[argument_rank]" +
                place);
  // The nearest program is the one of the same gain.
  step(zeros({7}), 2.0f);
  EXPECT_NE(step.last_miss().find("got f32[7]: dimension 0 is"), std::string::npos)
      << step.last_miss();
}

TEST(Recompile, StructureAndCount) {
  const auto total = compile(
      [](const std::vector<Tensor>& xs) {
        Tensor y = xs[0];
        for (size_t i = 1; i < xs.size(); ++i) y = y + xs[i];
        return y;
      },
      {.name = "total"});
  const Tensor x = zeros({2});
  total(std::vector<Tensor>{x});
  total(std::vector<Tensor>{x, x});
  EXPECT_TRUE(total.last_miss().starts_with(
      "total: argument 0: tree structure mismatch: expected a list of 1, got a list of 2 "
      "[argument_tree], compiled at recompile_test.cpp:"))
      << total.last_miss();
}

TEST(Recompile, CanBeRefused) {
  const std::string refused = fmt::format(
      "ValueError: step: the call would compile another program [recompile]\n"
      "  step: argument x: expected f32[4], got f32[5]: dimension 0 is 4, got 5 [argument_dim], "
      "compiled at recompile_test.cpp:{}\n"
      "  hint: declare sizes that vary by a name, as in compile(fn)(TensorLayout(f32, "
      "{{\"batch\"}})), and pass values that vary as tensors",
      kScaleLine);
  const auto step = scale();
  {
    const FailOnRecompile scope;
    step(zeros({4}), 2.0f);  // the first program is no recompile
    step(zeros({4}), 2.0f);
    EXPECT_EQ(refusal([&] { step(zeros({5}), 2.0f); }), refused);
  }
  EXPECT_EQ(step.cached(), 1u);
  ASSERT_EQ(setenv("TENON_FAIL_ON_RECOMPILE", "1", 1), 0);
  EXPECT_EQ(refusal([&] { step(zeros({5}), 2.0f); }), refused);
  ASSERT_EQ(setenv("TENON_FAIL_ON_RECOMPILE", "0", 1), 0);
  step(zeros({5}), 2.0f);
  unsetenv("TENON_FAIL_ON_RECOMPILE");
  EXPECT_EQ(step.cached(), 2u);

  const auto strict =
      compile([](const Tensor& x) { return x + 1; }, {.name = "f", .fail_on_recompile = true});
  strict(zeros({4}));
  EXPECT_NE(refusal([&] { strict(zeros({5})); }).find("[recompile]"), std::string::npos);
  strict(TensorLayout(f32, {"n"}))(zeros({5}));  // asked for
}

}  // namespace
}  // namespace tenon
