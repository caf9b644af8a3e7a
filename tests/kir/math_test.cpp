// The expansions of mathematical functions through the reference evaluator, with and without fused
// multiply-add. Generated code is tested in tests/codegen/math_test.cpp.
#include <gtest/gtest.h>

#include "math_cases.h"
#include "tenon/kir/evaluate.h"
#include "tenon/kir/expand_math.h"

namespace tenon::kir {
namespace {

using test::MathCase;

Kernel kernel_of(Op op, DType dtype) {
  Kernel kernel;
  Builder b(kernel);
  uint32_t x = b.add_buffer("x", dtype, false);
  uint32_t y = b.add_buffer("y", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val a = b.load(x, i);
    Val value = test::has_two_arguments(op) ? b.binary(op, a, b.load(y, i)) : b.unary(op, a);
    b.store(out, i, value);
  });
  return kernel;
}

template <class F>
void check(const MathCase& one, DType dtype, bool fused) {
  Kernel kernel = kernel_of(one.op, dtype);
  expand_math(kernel);
  verify(kernel);
  uint64_t seed = std::random_device{}();
  auto samples = test::math_samples<F>(one, 3000, seed);
  std::vector<F> out(samples.a.size());
  void* buffers[] = {samples.a.data(), samples.b.data(), out.data()};
  int64_t status = 0;
  evaluate(kernel, {buffers, nullptr, nullptr, &status}, 0, static_cast<int64_t>(out.size()),
           {fused});
  test::WorstError<F> worst;
  for (size_t k = 0; k < out.size(); ++k) worst.see(one.op, samples.a[k], samples.b[k], out[k]);
  EXPECT_LE(worst.ulp, one.limit) << name(one.op) << " " << tenon::name(dtype) << " of " << worst.a
                                  << ", " << worst.b << " gives " << worst.got << ", seed " << seed;
}

class Math : public testing::TestWithParam<MathCase> {};

TEST_P(Math, IsExactEnough) {
  for (bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "two roundings");
    check<float>(GetParam(), DType::kF32, fused);
    check<double>(GetParam(), DType::kF64, fused);
  }
}

std::string case_name(const testing::TestParamInfo<MathCase>& info) {
  return std::string(name(info.param.op));
}

INSTANTIATE_TEST_SUITE_P(Functions, Math, testing::ValuesIn(test::math_cases()), case_name);

TEST(ExpandMath, LeavesNoFunctionsAndKeepsTheRest) {
  Kernel kernel = parse(R"(kernel @k (x: f32[], y: f32[] out, s: f32["n"] scratch "0") {
  grid "n"
  cost "8", "20"
  scratch "64*n"
  origins log
  dims "n"
  %1 = for i in vector 0.."n" carry (%0 = 0.0 : f32 add) {
    %2 = load x[i] : f32
    %3 = log %2 : f32
    %4 = add %0, %3 : f32
    next %4
  }
  for j in parallel vector begin..end {
    %5 = cmp slt j, 3 : i64
    %6 = load x[j] if %5 else 0.0 : f32
    %7 = sub %6, %1 : f32
    store y[j], %7 if %5
  }
})");
  kernel.narrow = std::make_unique<Kernel>(kernel.clone());
  std::string before = print(kernel);
  expand_math(kernel);
  verify(kernel);
  std::string after = print(kernel);
  EXPECT_EQ(after.find(" log "), std::string::npos);
  EXPECT_NE(after.find("in rare"), std::string::npos);
  EXPECT_NE(kernel.narrow, nullptr);
  EXPECT_EQ(after.substr(0, after.find("%1")), before.substr(0, before.find("%1")));
  EXPECT_EQ(kernel.grid, Dim("n"));
  expand_math(kernel);
  EXPECT_EQ(print(kernel), after);
}

}  // namespace
}  // namespace tenon::kir
