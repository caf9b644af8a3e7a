// A call of sizes seen before allocates nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <new>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/tenon.h"
#include "tests/frontend/counted_new.h"

namespace tenon {

struct Pair {
  Tensor first, second;
};
TENON_STRUCT(Pair, first, second)

namespace {

class Allocations : public testing::Test {
 protected:
  void SetUp() override {
    if (!kNewIsCounted) GTEST_SKIP() << "the address sanitizer has an operator new of its own";
  }
};

template <class F>
size_t allocated_by(const F& call) {
  for (int i = 0; i < 5; ++i) call();
  const size_t before = allocations();
  for (int i = 0; i < 100; ++i) call();
  return allocations() - before;
}

TEST_F(Allocations, AreCounted) {
  EXPECT_EQ(allocated_by([] { ::operator delete(::operator new(8)); }), 100u);
}

TEST_F(Allocations, NoneByAFunctionCompiledAtItsFirstCall) {
  const auto f = compile([](const Tensor& x, float k) { return erf(x * k); });
  const auto g = compile([](const Tensor& x, const std::string&) { return x + 1; });
  const Tensor x = ones({16}).eval();
  const std::string text = "a text that is too long for the string itself";
  EXPECT_EQ(allocated_by([&] {
              f(x, 0.5f);
              g(x, text);
            }),
            0u);
}

TEST_F(Allocations, NoneByAProgramOfDeclarations) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x + y.sum(); })(
      TensorLayout(f32, {"n", 3}), TensorLayout(f32, {"m"}));
  const Tensor x = ones({5, 3}).eval(), y = ones({7}).eval(), z = ones({8}).eval();
  EXPECT_EQ(allocated_by([&] {
              f(x, y);
              f(x, z);
            }),
            0u);
}

TEST_F(Allocations, NoneByStructsSeveralResultsAndBuffers) {
  const auto f = compile([](const Pair& p) { return Pair{p.second * 2, p.first.sum()}; });
  const Pair pair{ones({2, 3}).eval(), ones({4}).eval()};
  EXPECT_EQ(allocated_by([&] { f(pair); }), 0u);
  const auto step = compile([](Tensor& state, const Tensor& x) { state += x; })(
      BufferLayout(f32, {4}), TensorLayout(f32, {4}));
  Tensor state = ones({4}).eval();
  EXPECT_EQ(allocated_by([&] { step(state, pair.second); }), 0u);
}

TEST_F(Allocations, NoneByResultsOfAnySize) {
  const auto f = compile([](const Tensor& x) { return x * 2; });
  for (const int64_t size : {0, 1, 1000, 1024, 1025, 5000, 1 << 20}) {
    const Tensor x = zeros({size}).eval();
    EXPECT_EQ(allocated_by([&] { f(x); }), 0u) << size;
  }
  const Tensor scalar = ones({}).eval();
  const Tensor deep = ones({1, 2, 1, 2, 1, 2}).eval();
  EXPECT_EQ(allocated_by([&] { f(scalar); }), 0u);
  EXPECT_EQ(allocated_by([&] { f(deep); }), 0u);
}

TEST_F(Allocations, NoneByALoadedProgram) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "calls.tenon").string();
  compile([](const Tensor& x, const Tensor& y) { return std::tuple(x * 2, x + y.sum()); },
          {.name = "f"})(TensorLayout(f32, {"n"}), TensorLayout(f32, {"m"}))
      .save(path);
  const LoadedProgram f = load(path);
  std::filesystem::remove(path);
  const Tensor x = ones({16}).eval(), y = ones({3}).eval();
  EXPECT_EQ(allocated_by([&] { f(x, y); }), 0u);
  EXPECT_EQ(allocated_by([&] {
              const CallResult first = f(x, y), second = f(y, x);
              CallResult moved = f(x, x);
              moved = f(y, y);
            }),
            0u);
}

TEST_F(Allocations, NoneWhenResultsAreKeptForAWhile) {
  const auto f = compile([](const Tensor& x) { return x * 2; });
  Tensor x = ones({16}).eval();
  EXPECT_EQ(allocated_by([&] { x = f(x); }), 0u);
}

}  // namespace
}  // namespace tenon
