// A call of sizes seen before asks for no memory and takes no lock, from any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <thread>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/runtime/allocator.h"
#include "tenon/tenon.h"
#include "tests/frontend/counted.h"

namespace tenon {

struct Pair {
  Tensor first, second;
};
TENON_STRUCT(Pair, first, second)

namespace {

class SteadyCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (!kCounted) GTEST_SKIP() << "a sanitizer has functions of its own in place of the counted";
  }
};

struct Spent {
  size_t allocations = 0;
  size_t locks = 0;
  bool operator==(const Spent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Spent& spent) {
  return out << spent.allocations << " allocations, " << spent.locks << " locks";
}
constexpr Spent kNothing{};

Spent so_far() { return {allocations(), locks()}; }
Spent since(const Spent& before) {
  const Spent now = so_far();
  return {now.allocations - before.allocations, now.locks - before.locks};
}

template <class F>
Spent spent_by(const F& call) {
  for (int i = 0; i < 5; ++i) call();
  const Spent before = so_far();
  for (int i = 0; i < 100; ++i) call();
  return since(before);
}

TEST_F(SteadyCalls, WhatIsCounted) {
  EXPECT_EQ(spent_by([] { ::operator delete(::operator new(8)); }), (Spent{100, 0}));
  void* volatile block = nullptr;  // seen, so that the pair is not left out
  EXPECT_EQ(spent_by([&] {
              block = std::aligned_alloc(64, 64);
              std::free(block);
            }),
            (Spent{100, 0}));
  std::mutex mutex;
  EXPECT_EQ(spent_by([&] { std::lock_guard lock(mutex); }), (Spent{0, 100}));
  std::shared_mutex shared;
  EXPECT_EQ(spent_by([&] {
              { std::shared_lock lock(shared); }
              std::unique_lock lock(shared);
            }),
            (Spent{0, 200}));
}

TEST_F(SteadyCalls, OfAFunctionCompiledAtItsFirstCall) {
  const auto f = compile([](const Tensor& x, float k) { return erf(x * k); });
  const auto g = compile([](const Tensor& x, const std::string&) { return x + 1; });
  const Tensor x = ones({16}).eval();
  const std::string text = "a text that is too long for the string itself";
  EXPECT_EQ(spent_by([&] {
              f(x, 0.5f);
              g(x, text);
            }),
            kNothing);
}

TEST_F(SteadyCalls, OfFourSignaturesInTurn) {
  const auto f = compile([](const Tensor& x, float k) { return x * k; });
  const Tensor x = ones({16}).eval(), y = ones({3, 1000}).eval();
  EXPECT_EQ(spent_by([&] {
              f(x, 0.5f);
              f(y, 0.5f);
              f(x, 2.0f);
              f(y, 2.0f);
            }),
            kNothing);
}

TEST_F(SteadyCalls, OfAProgramOfDeclarations) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x + y.sum(); })(
      TensorLayout(f32, {"n", 3}), TensorLayout(f32, {"m"}));
  const Tensor x = ones({5, 3}).eval(), y = ones({7}).eval(), z = ones({8}).eval();
  EXPECT_EQ(spent_by([&] {
              f(x, y);
              f(x, z);
            }),
            kNothing);
}

TEST_F(SteadyCalls, OfStructsSeveralResultsAndBuffers) {
  const auto f = compile([](const Pair& p) { return Pair{p.second * 2, p.first.sum()}; });
  const Pair pair{ones({2, 3}).eval(), ones({4}).eval()};
  EXPECT_EQ(spent_by([&] { f(pair); }), kNothing);
  for (const int64_t size : {4, 100'000}) {
    const auto step = compile([](Tensor& state, const Tensor& x) { state += x; })(
        BufferLayout(f32, {size}), TensorLayout(f32, {size}));
    Tensor state = ones({size}).eval();
    const Tensor x = ones({size}).eval();
    EXPECT_EQ(spent_by([&] { step(state, x); }), kNothing) << size;
  }
}

TEST_F(SteadyCalls, OfDonatedTensors) {
  for (const int64_t size : {4, 100'000}) {
    const auto step = compile([](const Tensor& state, const Tensor& x) { return state + x; },
                              {.argument_names = {"state", "x"}, .donate = {"state"}})(
        TensorLayout(f32, {size}), TensorLayout(f32, {size}));
    const Tensor x = ones({size}).eval();
    Tensor state = ones({size}).eval();
    EXPECT_EQ(spent_by([&] { state = step(state, x); }), kNothing) << size;
  }
}

TEST_F(SteadyCalls, OfContainers) {
  const Tensor x = ones({2, 3}).eval();
  const auto f =
      compile([](const std::vector<Tensor>& all, const std::map<std::string, Tensor>& named,
                 const std::map<int, Tensor>& numbered, const std::optional<Tensor>& more,
                 const std::pair<Tensor, int>& both) {
        return all[1] + named.at("w") + numbered.at(1234) + *more + both.first;
      });
  const std::vector<Tensor> all = {x, x};
  const std::map<std::string, Tensor> named = {{"v", x}, {"w", x}};
  const std::map<int, Tensor> numbered = {{-7, x}, {1234, x}};
  const std::optional<Tensor> more = x;
  const std::pair<Tensor, int> both = {x, 3};
  EXPECT_EQ(spent_by([&] { f(all, named, numbered, more, both); }), kNothing);
}

TEST_F(SteadyCalls, OfResultsOfAnySize) {
  const auto f = compile([](const Tensor& x) { return x * 2; });
  for (const int64_t size : {0, 1, 1000, 1024, 1025, 5000, 100'000, 1 << 20}) {
    const Tensor x = zeros({size}).eval();
    EXPECT_EQ(spent_by([&] { f(x); }), kNothing) << size;
  }
  const Tensor scalar = ones({}).eval();
  const Tensor deep = ones({1, 2, 1, 2, 1, 2}).eval();
  EXPECT_EQ(spent_by([&] { f(scalar); }), kNothing);
  EXPECT_EQ(spent_by([&] { f(deep); }), kNothing);
}

TEST_F(SteadyCalls, OfManyLargeResults) {
  const auto f = compile([](const Tensor& x) {
    std::array<Tensor, 12> out;
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = x[Slice(0, 2000 + 700 * static_cast<int64_t>(i))] * 2;
    return out;
  });
  const Tensor x = ones({1 << 16}).eval();
  EXPECT_EQ(spent_by([&] {
              f(x);
              const std::array<Tensor, 12> first = f(x), second = f(x);
            }),
            kNothing);
}

TEST_F(SteadyCalls, OfLargeResultsAfterManyOthers) {
  std::vector<std::shared_ptr<void>> others;
  for (size_t i = 0; i < 100; ++i) others.push_back(runtime::allocate(8192 << (i % 4)));
  others.clear();
  const auto f = compile([](const Tensor& x) { return x * 2; });
  const Tensor x = ones({5000}).eval();
  EXPECT_EQ(spent_by([&] { f(x); }), kNothing);
}

TEST_F(SteadyCalls, OfALoadedProgram) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "calls.tenon").string();
  compile([](const Tensor& x, const Tensor& y) { return std::tuple(x * 2, x + y.sum()); },
          {.name = "f"})(TensorLayout(f32, {"n"}), TensorLayout(f32, {"m"}))
      .save(path);
  const LoadedProgram f = load(path);
  std::filesystem::remove(path);
  const Tensor x = ones({16}).eval(), y = ones({3}).eval(), large = ones({5000}).eval();
  EXPECT_EQ(spent_by([&] { f(x, y); }), kNothing);
  EXPECT_EQ(spent_by([&] {
              const CallResult first = f(x, y), second = f(y, x);
              CallResult moved = f(x, large);
              moved = f(large, y);
            }),
            kNothing);
}

TEST_F(SteadyCalls, WhoseResultsAreKeptForAWhile) {
  const auto f = compile([](const Tensor& x) { return x * 2; });
  for (const int64_t size : {16, 5000}) {
    Tensor x = ones({size}).eval();
    EXPECT_EQ(spent_by([&] { x = f(x); }), kNothing) << size;
  }
}

constexpr int kThreads = 4;

// Runs calls(thread) on several threads at once, round after round, until one round has spent
// nothing; returns what the last round has spent. Threads that overlap for the first time ask for
// memory, and nothing says in which round they do.
template <class F>
Spent spent_by_threads(const F& calls) {
  constexpr int kRounds = 100;
  Spent before, spent;
  int rounds = 0;
  bool done = false;
  std::barrier barrier(kThreads, [&]() noexcept {
    spent = since(before);
    done = rounds > 1 && (spent == kNothing || rounds == kRounds);
    ++rounds;
    before = so_far();
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (true) {
        barrier.arrive_and_wait();
        if (done) return;
        calls(t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return spent;
}

TEST_F(SteadyCalls, OfSeveralThreads) {
  const auto f = compile([](const Tensor& x) { return std::pair(x * 2, x.sum()); });
  for (const int64_t size : {16, 5000, 200'000}) {
    const Tensor x = ones({size}).eval();
    EXPECT_EQ(spent_by_threads([&](int) {
                for (int i = 0; i < 100; ++i) f(x);
              }),
              kNothing)
        << size;
  }
}

// Two threads make results, two others drop them.
TEST_F(SteadyCalls, WhoseResultsOtherThreadsDrop) {
  const auto f = compile([](const Tensor& x) { return x * 2; });
  for (const int64_t size : {16, 5000}) {
    const Tensor x = ones({size}).eval();
    std::array<std::array<Tensor, 16>, kThreads / 2> passed;
    std::array<std::atomic<bool>, kThreads / 2> full{};
    EXPECT_EQ(spent_by_threads([&](int thread) {
                const auto pair = static_cast<size_t>(thread) / 2;
                const bool makes = thread % 2 == 0;
                for (int i = 0; i < 100; ++i) {
                  full[pair].wait(makes);
                  for (Tensor& place : passed[pair]) place = makes ? f(x) : Tensor();
                  full[pair] = makes;
                  full[pair].notify_one();
                }
              }),
              kNothing)
        << size;
  }
}

}  // namespace
}  // namespace tenon
