#include <gtest/gtest.h>

#include <sstream>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/layer.h"
#include "tenon/ir/text.h"
#include "tenon/ops/registry.h"
#include "tests/refusal.h"

namespace tenon {

struct StepParams {
  Tensor w, b;
};
TENON_STRUCT(StepParams, w, b)

namespace {

auto staged_step() {
  return stage(
      [](const Tensor& x, const StepParams& p, float gain) { return matmul(x, p.w) * gain + p.b; },
      {.name = "step", .argument_names = {"x", "p", "gain"}})(
      TensorLayout(f32, {"batch", 64}),
      StepParams{.w = TensorLayout(f32, {64, 32}), .b = TensorLayout(f32, {32})}, 2.0f);
}

TEST(Stage, PrintsTheWholeModule) {
  const auto staged = staged_step();
  std::ostringstream out;
  out << staged;
  EXPECT_EQ(out.str(), R"(tn.module {
  tn.graph @step(%x: tensor<["batch", 64], f32>, %p.b: tensor<[32], f32>, %p.w: tensor<[64, 32], f32>) -> tensor<["batch", 32], f32> {
    %0 = tn.matmul %x, %p.w : tensor<["batch", 32], f32>
    %1 = tn.constant 2.0 : f32
    %2 = tn.mul %0, %1
    %3 = tn.add %2, %p.b
    tn.return %3
  }
}
)");
  EXPECT_EQ(staged.str(), out.str());
  EXPECT_EQ(staged.count("mul"), 1);
  EXPECT_EQ(staged.count("matmul"), 1);
  staged.verify();
  ops::register_all();
  EXPECT_EQ(ir::canonical(ir::parse(out.str())), ir::canonical(staged.graph()));
}

TEST(Stage, LocationsAreTheUsersLines) {
  const auto staged = stage([](const Tensor& x) {
    const Layer layer("model");
    return x + 1;
  })(TensorLayout(f32, {2}));
  const std::string text = staged.str({.locations = true});
  EXPECT_NE(text.find("loc(\"model\"(\"stage_test.cpp\":"), std::string::npos) << text;
}

TEST(Stage, CompilesAnyNumberOfTimes) {
  const auto staged = staged_step();
  const auto a = staged.compile();
  const auto b = staged.compile();
  const StepParams params{ones({64, 32}), zeros({32})};
  EXPECT_EQ(a(ones({1, 64}), params, 2.0f).to_vector<float>()[0], 128);
  EXPECT_EQ(b(ones({1, 64}), params, 2.0f).to_vector<float>()[0], 128);
}

TEST(Stage, StaticsAloneAreLegalSpecs) {
  const auto staged = stage([](double k) { return full({2}, k); })(3.0);
  EXPECT_EQ(staged.graph()->params.size(), 0u);
  EXPECT_EQ(staged.compile()(3.0).to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(Stage, DistinctNamesDoNotMix) {
  const std::string text = refusal([] {
    stage([](const Tensor& x, const Tensor& y) { return x + y; })(TensorLayout(f32, {"n"}),
                                                                  TensorLayout(f32, {"m"}));
  });
  EXPECT_NE(text.find("stage_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find("ShapeError: add"), std::string::npos) << text;
}

TEST(Stage, ClashingRoutesAreRefused) {
  using Inner = std::map<std::string, Tensor>;
  const std::string text = refusal([] {
    stage([](const std::pair<Inner, std::map<std::string, Inner>>&, const Tensor& x) { return x; },
          {.argument_names = {"p", "p.0.a"}})(
        std::pair<Inner, std::map<std::string, Inner>>{{{"a", TensorLayout(f32, {1})}}, {}},
        TensorLayout(f32, {1}));
  });
  EXPECT_NE(text.find("two arguments are both called p.0.a [argument_route]"), std::string::npos)
      << text;
}

TEST(Stage, LargeConstantsAreElided) {
  const Tensor big = (arange(100000, f32) * 1.0f).eval();
  const auto staged = stage([&big](const Tensor& x) { return x + big; })(TensorLayout(f32, {1}));
  EXPECT_LT(staged.str().size(), 1000u);
  EXPECT_NE(staged.str().find("elided 100000 elements, 0.0 to 99999.0"), std::string::npos);
}

}  // namespace
}  // namespace tenon
