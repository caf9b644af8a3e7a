#include "tenon/frontend/compile.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "tenon/frontend/functions.h"
#include "tests/refusal.h"

namespace tenon {

struct Params {
  Tensor w, b;
};
TENON_STRUCT(Params, w, b)

enum class Mode { kPlain, kDoubled };

namespace {

using Floats = std::vector<float>;
Floats values(const Tensor& x) { return x.to_vector<float>(); }

TEST(Compile, TracesOnceForEachSignature) {
  int traces = 0;
  const auto fast = compile([&traces](const Tensor& x, int k) {
    ++traces;
    return x * k;
  });
  const Tensor x = tensor({1.0f, 2.0f});
  EXPECT_EQ(values(fast(x, 3)), (Floats{3, 6}));
  EXPECT_EQ(values(fast(x + 1, 3)), (Floats{6, 9}));
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(values(fast(x, 4)), (Floats{4, 8}));
  EXPECT_EQ(values(fast(tensor({1.0f}), 3)), Floats{3});
  EXPECT_EQ(fast(tensor({1}), 3).dtype(), i32);
  EXPECT_EQ(traces, 4);
  EXPECT_EQ(fast.cached(), 4u);
}

TEST(Compile, StaticsAreExact) {
  int traces = 0;
  const auto fast = compile([&traces](const Tensor& x, auto k) {
    ++traces;
    return x * k;
  });
  const Tensor x = tensor({1.0f});
  fast(x, 1);
  fast(x, 1.0);
  fast(x, true);
  EXPECT_EQ(traces, 3);
}

TEST(Compile, KeepsABoundedNumberOfPrograms) {
  const auto fast = compile([](const Tensor& x, int k) { return x + k; }, {.cache_size = 3});
  for (int k = 0; k < 10; ++k) EXPECT_EQ(fast(tensor({1.0f}), k).item<float>(), 1.0f + k);
  EXPECT_EQ(fast.cached(), 3u);
}

// Check 1 and 2: one program, any batch; the static is compared.
TEST(Compile, NamedDimensionServesEverySize) {
  const auto program =
      compile([](const Tensor& x, float gain) { return x * gain; },
              {.argument_names = {"x", "gain"}})(TensorLayout(f32, {"batch", 2}), 3.0f);
  for (int64_t batch : {4, 7, 1, 0}) {
    const Tensor y = program(ones({batch, 2}), 3.0f);
    EXPECT_EQ(y.dims(), (std::vector<int64_t>{batch, 2}));
    EXPECT_EQ(values(y), Floats(static_cast<size_t>(batch) * 2, 3.0f));
  }
  EXPECT_EQ(
      refusal([&] {
        program(ones({4, 2}), 4.0f);
      }),
      "ValueError: lambda: argument gain: compiled for 3.0, got 4.0 [argument_static]\n"
      "  hint: a value that is not a tensor is part of the program: compile again for another "
      "one");
}

// Check 3, over a map.
TEST(Compile, ContainersAndStructs) {
  using Pair = std::map<std::string, Tensor>;
  const auto combine = [](const Pair& p, double gain) { return (p.at("a") + p.at("b")) * gain; };
  const Pair specs{{"a", TensorLayout(f32, {2})}, {"b", TensorLayout(f32, {2})}};
  const auto program = compile(combine).with(specs, 2.0);
  EXPECT_EQ(program.graph()->params.size(), 2u);
  const Pair arguments{{"a", tensor({1.0f, 2.0f})}, {"b", tensor({10.0f, 20.0f})}};
  EXPECT_EQ(values(program(arguments, 2.0)), (Floats{22, 44}));

  const auto step = compile([](const Tensor& x, const Params& p, Mode mode) {
    const Tensor y = matmul(x, p.w) + p.b;
    return mode == Mode::kDoubled ? y * 2 : y;
  })(TensorLayout(f32, {"batch", 2}),
     Params{.w = TensorLayout(f32, {2, 1}), .b = TensorLayout(f32, {1})}, Mode::kDoubled);
  const Params params{tensor({{1.0f}, {10.0f}}), tensor({0.5f})};
  EXPECT_EQ(values(step(tensor({{1.0f, 2.0f}}), params, Mode::kDoubled)), Floats{43});
  EXPECT_NE(refusal([&] {
              step(tensor({{1.0f, 2.0f}}), params, Mode::kPlain);
            }).find("argument 2: compiled for"),
            std::string::npos);
}

TEST(Compile, ResultsKeepTheirStructureAndStatics) {
  const auto program = compile([](const Tensor& x, std::optional<int> k) {
    return std::tuple(x * 2, k.value_or(7), std::vector<Tensor>{x, x + 1}, std::string("alpha"));
  })(TensorLayout(f32, {2}), std::optional<int>());
  const auto [y, k, list, text] = program(tensor({1.0f, 2.0f}), std::optional<int>());
  EXPECT_EQ(values(y), (Floats{2, 4}));
  EXPECT_EQ(k, 7);
  EXPECT_EQ(values(list[0]), (Floats{1, 2}));
  EXPECT_EQ(values(list[1]), (Floats{2, 3}));
  EXPECT_EQ(text, "alpha");
}

TEST(Compile, ManyArguments) {
  using List = std::vector<Tensor>;
  const auto program = compile([](const List& xs, const std::map<std::string, List>& more,
                                  int arity, std::array<std::string, 2> tags) {
                         Tensor total = xs[0] + xs[1] * 10;
                         for (const auto& [name, list] : more) {
                           for (const Tensor& x : list) total += x * 100;
                         }
                         return std::tuple(total, arity, tags);
                       })
                           .with(List{TensorLayout(f32, {2}), TensorLayout(f32, {2})},
                                 std::map<std::string, List>{{"hi", {TensorLayout(f32, {2})}},
                                                             {"lo", {TensorLayout(f32, {2})}}},
                                 2, std::array<std::string, 2>{"alpha", "beta"});
  EXPECT_EQ(program.graph()->params.size(), 4u);
  const Tensor x = tensor({1.0f, 2.0f});
  const auto [y, arity, tags] =
      program(List{x, x}, std::map<std::string, List>{{"hi", {x}}, {"lo", {x}}}, 2,
              std::array<std::string, 2>{"alpha", "beta"});
  EXPECT_EQ(values(y), (Floats{211, 422}));
  EXPECT_EQ(arity, 2);
  EXPECT_EQ(tags[1], "beta");
}

// Checks 12 to 14.
TEST(Compile, CallErrorsNameTheArgument) {
  const auto program = compile([](const Tensor& x, const Params& p) { return x + p.w + p.b; })(
      TensorLayout(f32, {2}), Params{TensorLayout(f32, {2}), TensorLayout(f32, {2})});
  const Tensor x = tensor({1.0f, 2.0f});
  const Tensor bad = tensor({1.0f, 2.0f, 3.0f});
  EXPECT_NE(refusal([&] { program(bad, Params{x, x}); }).find("argument 0:"), std::string::npos);
  EXPECT_NE(refusal([&] { program(x, Params{x, bad}); }).find("argument 1.b:"), std::string::npos);
  EXPECT_NE(refusal([&] {
              program(x, Params{x, cast(x, f64)});
            }).find("[argument_dtype]"),
            std::string::npos);
  EXPECT_NE(refusal([&] { program(x); }).find("[argument_count]"), std::string::npos);
  EXPECT_NE(refusal([&] { program(x, x); }).find("[argument_tree]"), std::string::npos);
  EXPECT_NE(refusal([&] {
              program(3.0f, Params{x, x});
            }).find("[argument_type]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              program(x, Params{x, TensorLayout(f32, {2})});
            }).find("TensorLayout"),
            std::string::npos);
  const std::string bare = refusal([&] { program(x.array(), Params{x, x}); });
  EXPECT_NE(bare.find("TypeError"), std::string::npos) << bare;
  EXPECT_NE(bare.find("execute_raw"), std::string::npos) << bare;
  const auto raw = program.execute_raw({x.array(), x.array(), x.array()});
  EXPECT_EQ(values(Tensor(raw[0])), values(program(x, Params{x, x})));
  EXPECT_NE(refusal([&] { program.execute_raw({x.array()}); }).find("[argument_count]"),
            std::string::npos);
}

// Check 11: specs that are values.
TEST(Compile, SpecsAreDeclarations) {
  const auto f = compile([](const Tensor& x, const Tensor& y) { return x + y; });
  const Tensor live = tensor({1.0f});
  EXPECT_EQ(refusal([&] { f(TensorLayout(f32, {1}), live); }),
            "TypeError: lambda: argument 1 is a value, expected a layout [spec_c1]\n"
            "  hint: pass its .layout()");
  EXPECT_EQ(values(f(TensorLayout(f32, {1}), live.layout())(live, live)), Floats{2});
}

// Check 16 and row 9.11.
TEST(Compile, WritesReachTheCallersMemory) {
  const auto program = compile([](Tensor cache, const Tensor& x) {
    cache.store(x);
    return cache * 2;
  })(BufferLayout(f32, {3}), TensorLayout(f32, {3}));
  std::vector<float> memory{0, 0, 0};
  const Tensor cache = Tensor::borrow(memory.data(), f32, {3});
  const Tensor lazy = cache + 5;  // made before the write: keeps the old contents
  EXPECT_EQ(values(program(cache, tensor({1.0f, 2.0f, 3.0f}))), (Floats{2, 4, 6}));
  EXPECT_EQ(memory, (Floats{1, 2, 3}));
  EXPECT_EQ(values(cache), (Floats{1, 2, 3}));
  EXPECT_EQ(values(lazy), (Floats{5, 5, 5}));

  const auto in_place = compile([](Tensor c) { c += 1; })(BufferLayout(f32, {3}));
  Tensor owned = zeros({3});
  in_place(owned);
  in_place(owned);
  EXPECT_EQ(values(owned), (Floats{2, 2, 2}));

  const auto overlap = compile([](Tensor a, const Tensor& x) {
    a.store(x + 1);
    return a + x;
  })(BufferLayout(f32, {3}), TensorLayout(f32, {3}));
  EXPECT_EQ(values(overlap(cache, cache)), (Floats{3, 5, 7}));
}

// A program holds what it captured as it was, also when the tensor is written later.
TEST(Compile, CapturedValuesOutliveWrites) {
  const Tensor x = (arange(3, f32) + 1).eval();
  const auto captured = compile([&x](const Tensor& y) { return x + y; })(TensorLayout(f32, {3}));
  const auto write = compile([](Tensor c) { c += 5; })(BufferLayout(f32, {3}));
  write(x);
  EXPECT_EQ(values(x), (Floats{6, 7, 8}));
  EXPECT_EQ(values(captured(zeros({3}))), (Floats{1, 2, 3}));
}

TEST(Compile, WritingATensorArgumentIsRefused) {
  const auto f = compile([](Tensor x) {
    x.store(1.0f);
    return x;
  });
  const std::string text = refusal([&] { f(TensorLayout(f32, {2})); });
  EXPECT_NE(text.find("TypeError: store: argument 0 was staged as a tensor"), std::string::npos)
      << text;
  EXPECT_NE(text.find("BufferLayout"), std::string::npos);
}

TEST(Compile, ReadsBeforeAStoreKeepTheOldValue) {
  const auto program = compile([](Tensor c) {
    const Tensor before = c + 0;
    c["1:3"] = 7;
    return std::pair(before, c + 0);
  })(BufferLayout(f32, {3}));
  Tensor c = zeros({3});
  const auto [before, after] = program(c);
  EXPECT_EQ(values(before), (Floats{0, 0, 0}));
  EXPECT_EQ(values(after), (Floats{0, 7, 7}));
}

TEST(Compile, PrintsItself) {
  const auto program =
      compile([](const Tensor& x) { return x + 1; }, {.name = "step"})(TensorLayout(f32, {"n"}));
  EXPECT_EQ(program.str(), "compiled step(f32[\"n\"]) → f32[\"n\"]");
}

TEST(Compile, ResultsAreMemoryOfTheirOwn) {
  const auto same =
      compile([](const Tensor& x) { return std::pair(x, x); })(TensorLayout(f32, {1}));
  std::vector<float> memory{1};
  const auto [a, b] = same(Tensor::borrow(memory.data(), f32, {1}));
  memory[0] = 5;
  EXPECT_EQ(a.item<float>(), 1);
  EXPECT_EQ(b.item<float>(), 1);
}

TEST(Compile, NothingToReturnIsRefused) {
  EXPECT_EQ(refusal([] { compile([](const Tensor&) { return 5; })(TensorLayout(f32, {1})); }),
            "TypeError: lambda: returns no tensor and writes no buffer: it returned 5 [result_c1]");
}

TEST(Compile, Disabled) {
  int traces = 0;
  const auto fast = compile([&traces](const Tensor& x) {
    ++traces;
    return x * 2;
  });
  const DisableCompile off;
  EXPECT_EQ(values(fast(tensor({1.0f}))), Floats{2});
  EXPECT_EQ(values(fast(tensor({1.0f}))), Floats{2});
  EXPECT_EQ(traces, 2);
  EXPECT_EQ(fast.cached(), 0u);
}

TEST(Compile, AnExceptionLeavesNothingBehind) {
  bool fail = true;
  const auto fast = compile([&fail](const Tensor& x) {
    if (fail) throw std::runtime_error("mine");
    return x + 1;
  });
  EXPECT_THROW(fast(tensor({1.0f})), std::runtime_error);
  fail = false;
  EXPECT_EQ(values(fast(tensor({1.0f}))), Floats{2});
}

TEST(Compile, ThreadsShareAFunction) {
  const auto fast = compile([](const Tensor& x, int k) { return x * k + 1; });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&fast, &wrong] {
      for (int i = 0; i < 50; ++i) {
        const Tensor y = fast(tensor({1.0f, 2.0f}), i % 5);
        if (values(y) != Floats{1.0f * float(i % 5) + 1, 2.0f * float(i % 5) + 1}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Compile, CallsInDestructorsAtTheEndOfAThread) {
  const auto fast = compile([](const Tensor& x) { return x + 1; });
  const auto program = compile([](const Tensor& x) { return x * 2; })(TensorLayout(f32, {"n"}));
  struct Late {
    std::function<void()> work = [] {};
    ~Late() { work(); }
  };
  std::vector<Floats> got;
  std::thread([&] {
    thread_local Late late;  // goes after what calls keep for the thread
    late.work = [&] {
      for (const float x : {1.0f, 2.0f}) {
        got.push_back(values(fast(tensor({x}))));
        got.push_back(values(fast(tensor({x, x}))));
        got.push_back(values(program(tensor({x, x, x}))));
      }
    };
    late.work();
  }).join();
  const std::vector<Floats> once = {{2}, {2, 2}, {2, 2, 2}, {3}, {3, 3}, {4, 4, 4}};
  std::vector<Floats> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(got, twice);
}

}  // namespace
}  // namespace tenon
