#include "tenon/frontend/function_name.h"

#include <gtest/gtest.h>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/subgraph.h"

namespace tenon {

Tensor shifted(const Tensor& x) { return x + 3; }
template <class T>
Tensor scaled_by(const Tensor& x) {
  return x * sizeof(T);
}

struct Scale {
  float factor;
  Tensor operator()(const Tensor& x) const { return x * factor; }
};
template <class T>
struct Offset {
  struct Inner {
    Tensor operator()(const Tensor& x) const { return x; }
  };
  Tensor operator()(const Tensor& x) const { return x + static_cast<T>(1); }
};

namespace {

Tensor local(const Tensor& x) { return x - 7; }

const TensorLayout kPair(f32, {2});

TEST(FunctionName, OfFunctions) {
  EXPECT_EQ(compile(shifted).name(), "shifted");
  EXPECT_EQ(compile(local).name(), "local");
  EXPECT_EQ(compile(scaled_by<double>).name(), "scaled_by");
  EXPECT_EQ(stage(local)(kPair).name(), "local");
  EXPECT_EQ(compile(shifted)(kPair).str(), "compiled shifted(f32[2]) → f32[2]");
}

TEST(FunctionName, OfTemplateArguments) {
  EXPECT_EQ(compile<shifted>().name(), "shifted");
  EXPECT_EQ(compile<&local>().name(), "local");
  EXPECT_EQ(compile<scaled_by<float>>().name(), "scaled_by");
  EXPECT_EQ(stage<local>()(kPair).name(), "local");
  EXPECT_EQ(compile<shifted>({.name = "mine"}).name(), "mine");
  EXPECT_EQ(compile<shifted>()(tensor({1.0f, 2.0f})).to_vector<float>(),
            (std::vector<float>{4, 5}));
  const auto staged = stage([](const Tensor& x) { return as_subgraph<local>()(x); })(kPair);
  EXPECT_NE(staged.str().find("@local("), std::string::npos) << staged.str();
}

TEST(FunctionName, OfClasses) {
  EXPECT_EQ(compile(Scale{2}).name(), "Scale");
  EXPECT_EQ(compile(Offset<int>()).name(), "Offset");
  EXPECT_EQ(compile(Offset<int>::Inner()).name(), "Inner");
  EXPECT_EQ(compile(std::function<Tensor(const Tensor&)>(shifted)).name(), "function");
  EXPECT_EQ(compile([](const Tensor& x) { return x; }).name(), "lambda");
}

TEST(FunctionName, GivenNamesStandAsTheyAre) {
  const auto staged = stage(shifted, {.name = "a b-c.d"})(kPair);
  EXPECT_EQ(staged.name(), "a b-c.d");
  EXPECT_NE(staged.str().find("tn.graph @\"a b-c.d\"("), std::string::npos) << staged.str();
}

// What a program without symbols falls back to.
TEST(FunctionName, WithoutASymbolThePlaceIsTheName) {
  static const char kNoFunction[16] = {};
  EXPECT_EQ(symbol_name(kNoFunction), "");
  EXPECT_EQ(symbol_name(nullptr), "");
  EXPECT_EQ(place_name(Here::current()), fmt::format("fn(function_name_test.cpp:{})", __LINE__));
}

}  // namespace
}  // namespace tenon
