#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/subgraph.h"
#include "tenon/program/program.h"
#include "tenon/runtime/allocator.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

TEST(SaveMany, SeveralProgramsInOneFile) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "many.tenon").string();
  const auto a =
      compile([](const Tensor& x) { return x + 1; }, {.name = "a"})(TensorLayout(f32, {2}));
  const auto b =
      compile([](const Tensor& x) { return x * 3; }, {.name = "b"})(TensorLayout(f32, {2}));
  save(path, {a.executable(), b.executable()});
  const std::vector<runtime::Array> arguments{tensor({1.0f, 2.0f}).array()};
  const auto loaded = program::Program::load(path, {.program = "b"});
  EXPECT_EQ(Tensor(loaded.execute_raw(arguments)[0]).to_vector<float>(),
            (std::vector<float>{3, 6}));
  EXPECT_NE(refusal([&] {
              save(path, {a.executable(), a.executable()});
            }).find("ValueError"),
            std::string::npos);
  std::filesystem::remove(path);
}

TEST(BindMany, WhatIsComputedFromWeightsIsKeptOnce) {
  const auto product = [](const char* name, const char* weight, int64_t rows) {
    return compile(
        [weight](const Tensor& x) {
          return matmul(x, transpose(constant_external(weight, TensorLayout(f32, {256, 64}))));
        },
        {.name = name})(TensorLayout(f32, {rows, 64}));
  };
  std::vector<float> data(size_t{256} * 64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7);
  const Weights weights = {{"w", tensor(data, {256, 64})}};
  const auto blocks = [](auto&& work) {
    const runtime::AllocatorStats before = runtime::allocator_stats();
    work();
    const runtime::AllocatorStats after = runtime::allocator_stats();
    return after.fresh_blocks + after.reused_blocks - before.fresh_blocks - before.reused_blocks;
  };
  const auto a = product("a", "w", 1);
  const auto b = product("b", "w", 33);
  const uint64_t of_one = blocks([&] { bind_weights({a.executable()}, weights); });
  EXPECT_GT(of_one, 0u);
  EXPECT_EQ(blocks([&] { bind_weights({a.executable(), b.executable()}, weights); }), of_one);
  const Tensor x = ones({33, 64});
  EXPECT_EQ(b(x).to_vector<float>()[7], a(ones({1, 64})).to_vector<float>()[7]);

  const std::string path = (std::filesystem::path(testing::TempDir()) / "bound.tenon").string();
  save(path, {a.executable(), b.executable()});
  std::vector<program::Program> loaded{program::Program::load(path, {.program = "a"}),
                                       program::Program::load(path, {.program = "b"})};
  const program::ExternalArrays arrays = {{"w", weights.at("w").array()}};
  EXPECT_EQ(blocks([&] { program::Program::bind_all(loaded, arrays); }), of_one);
  EXPECT_EQ(Tensor(loaded[1].execute_raw({{x.array()}})[0]).to_vector<float>(),
            b(x).to_vector<float>());
  std::filesystem::remove(path);
}

TEST(BindMany, WeightsComeOneByOneAndLeave) {
  const auto product = [](const Tensor& x) {
    Tensor y = x;
    for (const char* name : {"a", "b", "c"}) {
      y = matmul(y, transpose(constant_external(name, TensorLayout(f32, {64, 64}))));
    }
    return y;
  };
  const auto program = compile(product, {.name = "product"})(TensorLayout(f32, {"n", 64}));
  std::vector<std::weak_ptr<const void>> given;
  const auto alive = [&given] {
    return std::count_if(given.begin(), given.end(), [](auto& owner) { return !owner.expired(); });
  };
  const auto weight = [&](const program::Weight& wanted) {
    EXPECT_EQ(alive(), 0) << wanted.name;
    auto array = std::make_shared<runtime::Array>((ones({64, 64}) * 0.25f).array());
    given.emplace_back(array);
    return Tensor(runtime::Array::borrow(f32, {64, 64}, array->mutable_data(), array, false));
  };
  bind_weights_from({program.executable()}, weight);
  EXPECT_EQ(given.size(), 3u);
  EXPECT_EQ(alive(), 0);
  EXPECT_EQ(program(ones({2, 64})).to_vector<float>()[100], 16.0f * 16.0f * 16.0f);
  EXPECT_EQ(refusal([&] {
              bind_weights_from({program.executable()}, [](const program::Weight&) {
                return ones({64, 63});
              });
            }),
            "ValueError: product: weight a: expected f32[64, 64], got f32[64, 63] [weight_type]");
}

TEST(BindMany, BindingAgainLetsTheFirstWeightsGo) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "again.tenon").string();
  compile([](const Tensor& x) { return x + constant_external("w", TensorLayout(f32, {2})); },
          {.name = "a"})(TensorLayout(f32, {2}))
      .save(path);
  for (const bool data_only : {false, true}) {
    std::vector<program::Program> loaded{program::Program::load(path, {.data_only = data_only})};
    auto memory = std::make_shared<std::vector<float>>(2, 1.0f);
    const std::weak_ptr<const void> first = memory;
    program::Program::bind_all(
        loaded, {{"w", runtime::Array::borrow(f32, {2}, memory->data(), memory, false)}});
    memory.reset();
    EXPECT_FALSE(first.expired());
    program::Program::bind_all_from(loaded, [](const program::Weight&) {
      return tensor({5.0f, 6.0f}).array();
    });
    EXPECT_TRUE(first.expired());
    const std::vector<runtime::Array> results =
        loaded[0].execute_raw({{tensor({1.0f, 1.0f}).array()}});
    EXPECT_EQ(Tensor(results[0]).to_vector<float>(), (std::vector<float>{6, 7}));
  }
  std::filesystem::remove(path);
}

// One name of two types is refused before the first program is bound.
TEST(BindMany, NothingIsBoundWhereTwoTypesMeet) {
  const auto path = [](const char* name) {
    return (std::filesystem::path(testing::TempDir()) / name).string();
  };
  std::vector<std::shared_ptr<Executable>> programs;
  std::vector<program::Program> loaded;
  for (const int64_t size : {2, 3}) {
    const std::string name = size == 2 ? "a" : "b";
    const auto f = compile(
        [size](const Tensor& x) { return x + constant_external("w", TensorLayout(f32, {size})); },
        {.name = name})(TensorLayout(f32, {size}));
    f.save(path(name.c_str()));
    programs.push_back(f.executable());
    loaded.push_back(program::Program::load(path(name.c_str())));
    std::filesystem::remove(path(name.c_str()));
  }
  const std::string text =
      "ValueError: a, b: \"w\" is declared as f32[2] and as f32[3] [weight_twice]";
  const Tensor two = tensor({1.0f, 2.0f});
  size_t asked = 0;
  const auto counted = [&](const program::Weight&) { return ++asked, two.array(); };
  EXPECT_EQ(refusal([&] { bind_weights(programs, {{"w", two}}); }), text);
  EXPECT_EQ(refusal([&] {
              bind_weights_from(programs, [&](const program::Weight&) { return ++asked, two; });
            }),
            text);
  EXPECT_EQ(refusal([&] { program::Program::bind_all(loaded, {{"w", two.array()}}); }), text);
  EXPECT_EQ(refusal([&] { program::Program::bind_all_from(loaded, counted); }), text);
  EXPECT_EQ(asked, 0u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NE(programs[i]->str().find("not bound"), std::string::npos);
    EXPECT_FALSE(loaded[i].bound());
  }
}

TEST(BindMany, EveryWeightIsReadAndGiven) {
  const auto a =
      compile([](const Tensor& x) { return x + constant_external("u", TensorLayout(f32, {2})); },
              {.name = "a"})(TensorLayout(f32, {2}));
  const auto b =
      compile([](const Tensor& x) { return x * constant_external("v", TensorLayout(f32, {2})); },
              {.name = "b"})(TensorLayout(f32, {2}));
  const Tensor two = tensor({1.0f, 2.0f});
  const std::vector<std::shared_ptr<Executable>> both = {a.executable(), b.executable()};
  EXPECT_EQ(refusal([&] {
              bind_weights(both, {{"u", two}});
            }),
            "KeyError: a, b: missing weights: v [weight_missing]");
  EXPECT_NE(refusal([&] {
              bind_weights(both, {{"u", two}, {"v", two}, {"vv", two}});
            }).find("KeyError: a, b: nothing reads the weight vv"),
            std::string::npos);
  bind_weights(both, {{"u", two}, {"v", two}});
  EXPECT_EQ(a(two).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(b(two).to_vector<float>(), (std::vector<float>{1, 4}));
}

}  // namespace
}  // namespace tenon
