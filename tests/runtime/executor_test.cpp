#include "tenon/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "tenon/base/check_code.h"
#include "tenon/base/error.h"
#include "tenon/runtime/plan.h"
#include "tests/refusal.h"

namespace tenon::runtime {
namespace {

using abi::DimId;
using abi::KernelArgs;
using abi::Module;
using abi::Slot;
using abi::SlotId;

// Kernels as code generation would make them, over f32.
void double_it(const KernelArgs* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  auto* out = static_cast<float*>(args->buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = 2 * x[i];
}

void add(const KernelArgs* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  const auto* y = static_cast<const float*>(args->buffers[1]);
  auto* out = static_cast<float*>(args->buffers[2]);
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] + y[i];
}

// Goes through its thread's scratch memory; dims[0] is n. Takes fmod from the table.
void through_scratch(const KernelArgs* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  auto* out = static_cast<float*>(args->buffers[1]);
  auto* scratch = static_cast<float*>(args->scratch);
  for (int64_t i = begin; i < end; ++i) {
    scratch[0] = x[i];
    for (int k = 0; k < 20; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
    out[i] = static_cast<float>(args->table->fmod(scratch[0], 100.0)) +
             static_cast<float>(args->dims[0]);
  }
}

void fail_check(const KernelArgs* args, int64_t, int64_t) { *args->status = kCheckIndexOutOfRange; }

const std::vector<abi::KernelFn> kKernels = {double_it, add, through_scratch, fail_check};
enum Kernel : uint32_t { kDouble, kAdd, kScratch, kFail };

// Builds modules over one-dimensional f32 values of n elements.
struct Fake {
  Module module;
  DimId one, zero, n, bytes, heavy;

  Fake() {
    one = dim(1);
    zero = dim(0);
    n = dim("n");
    bytes = dim(Dim("n") * Dim(4));
    heavy = dim(100000);
    for (const char* name : {"double", "add", "scratch", "take"}) {
      module.kernels.push_back({name, {name}, ""});
    }
  }
  DimId dim(const Dim& d) {
    module.dims.push_back(d);
    return static_cast<DimId>(module.dims.size() - 1);
  }
  Slot slot(Slot::Kind kind, uint32_t ref = 0, uint32_t first = 0, uint32_t last = 0) const {
    return {kind, DType::kF32, {n}, bytes, ref, first, last};
  }
  abi::Program& program(const char* name, uint32_t arguments, uint32_t results) {
    abi::Program p;
    p.name = name;
    p.arguments = arguments;
    p.results = results;
    for (uint32_t i = 0; i < arguments; ++i) p.slots.push_back(slot(Slot::Kind::kArgument, i));
    for (uint32_t i = 0; i < results; ++i) p.slots.push_back(slot(Slot::Kind::kResult, i));
    module.programs.push_back(std::move(p));
    module.entry = static_cast<uint32_t>(module.programs.size() - 1);
    return module.programs.back();
  }
  abi::LaunchStep launch(Kernel kernel, std::vector<SlotId> buffers) const {
    return {kernel, std::move(buffers), {n}, n, zero, one, zero};
  }
};

std::vector<ArgumentSpec> specs(std::vector<std::string> routes, std::vector<bool> writable = {}) {
  std::vector<ArgumentSpec> out;
  writable.resize(routes.size());
  for (size_t i = 0; i < routes.size(); ++i) {
    out.push_back({routes[i], DType::kF32, {Dim("n")}, writable[i]});
  }
  return out;
}

Array floats(const std::vector<float>& values) {
  return Array::copy_of(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}
std::vector<float> values(const Array& a) { return {a.as<float>(), a.as<float>() + a.count()}; }
using Floats = std::vector<float>;

Executor executor(const Fake& fake, std::vector<ArgumentSpec> arguments, EvalHook eval = nullptr) {
  return Executor(std::make_shared<Module>(fake.module), std::move(arguments), std::move(eval),
                  kKernels);
}

// t = 2x, u = t + y, out = 2u with t and u in the arena.
Fake chain() {
  Fake f;
  abi::Program& p = f.program("step", 2, 1);
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 0, 1));
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 1, 2));
  p.steps = {f.launch(kDouble, {0, 3}), f.launch(kAdd, {3, 1, 4}), f.launch(kDouble, {4, 2})};
  return f;
}

TEST(Executor, RunsAChainForAnySize) {
  Fake f = chain();
  Executor run = executor(f, specs({"x", "y"}));
  for (int64_t n : {3, 0, 1, 3, 100000, 7, 3}) {
    Floats x(static_cast<size_t>(n), 1.5f), y(static_cast<size_t>(n), 2.0f);
    std::vector<Array> args = {floats(x), floats(y)};
    std::vector<Array> out = run.call(args);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(values(out[0]), Floats(static_cast<size_t>(n), 10.0f));
  }
  std::vector<Array> args = {floats({1, 2}), floats({3, 4})};
  run.call(args);
  const Executor::Sizes sizes = run.recent_sizes();
  EXPECT_EQ(sizes.names, "n = 2");
  EXPECT_EQ(sizes.plan->programs[0].frame, 128u);
  EXPECT_EQ(sizes.plan->programs[0].slots[3].offset, 0u);
  EXPECT_EQ(sizes.plan->programs[0].slots[4].offset, 64u);
}

TEST(Executor, SplitsOverThreads) {
  Fake f;
  abi::Program& p = f.program("step", 1, 1);
  abi::LaunchStep step = f.launch(kScratch, {0, 1});
  step.scratch_bytes = f.dim(4);
  step.ops_per_index = f.heavy;
  p.steps = {step};
  Executor run = executor(f, specs({"x"}));
  Floats x(5000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::vector<Array> args = {floats(x)};
  Floats out = values(run.call(args)[0]);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], std::fmod(x[i], 100.0f) + 5000.0f);
}

TEST(Executor, NamesAreCompared) {
  Fake f = chain();
  Executor run = executor(f, specs({"x", "p.y"}));
  std::vector<Array> args = {floats({1, 2, 3}), floats({1, 2, 3, 4})};
  EXPECT_EQ(refusal([&] { run.call(args); }),
            "ShapeError: step: argument p.y: dim n is 4, but argument x has n = 3 [argument_dim]");

  std::vector<ArgumentSpec> ranged = specs({"x", "y"});
  ranged[0].shape = {Dim("n", {2, 8, 2})};
  Executor bounded = executor(f, ranged);
  args = {floats({1}), floats({1})};
  EXPECT_EQ(refusal([&] { bounded.call(args); }),
            "ShapeError: step: argument x: dim n is 1, outside its range [2, 8] [argument_range]");
  args = {floats({1, 2, 3}), floats({1, 2, 3})};
  EXPECT_EQ(refusal([&] { bounded.call(args); }),
            "ShapeError: step: argument x: dim n is 3, not a multiple of 2 [argument_range]");

  std::vector<ArgumentSpec> square = specs({"x", "y"});
  square[1].shape = {Dim("n") * Dim(2)};
  Fake g;
  g.program("step", 2, 1).steps = {g.launch(kDouble, {0, 2})};
  g.module.programs[0].slots[1].bytes = g.dim(Dim("n") * Dim(8));
  g.module.programs[0].slots[1].dims = {g.dim(Dim("n") * Dim(2))};
  Executor twice = executor(g, square);
  args = {floats({1, 2}), floats({1, 2, 3})};
  EXPECT_EQ(refusal([&] { twice.call(args); }),
            "ShapeError: step: argument y: dim 0 is 3, expected 2*n = 4 for n = 2 [argument_dim]");
  args[1] = floats({1, 2, 3, 4});
  EXPECT_EQ(values(twice.call(args)[0]), (Floats{2, 4}));

  square[0].shape = {Dim(2)};  // the name is told from 2*n
  args[0] = floats({1, 2});
  Executor told = executor(g, square);
  EXPECT_EQ(values(told.call(args)[0]), (Floats{2, 4}));
  args[1] = floats({1, 2, 3});
  EXPECT_EQ(refusal([&] { told.call(args); }),
            "ShapeError: step: argument y: dim 0 is 3, expected 2*n for a whole n [argument_dim]");

  square[1].shape = {Dim("n") * Dim("n")};
  EXPECT_EQ(
      refusal([&] { executor(g, square); }),
      "ValueError: step: the name n is the size of no argument's dimension, it only stands in "
      "n*n of argument y [argument_symbol]\n"
      "  hint: give one argument a dimension that is the bare name");
}

TEST(Executor, CallsShareTheArena) {
  // body(a) = 2·(2a); step(x) = body(body(x)) + x
  Fake f;
  abi::Program& body = f.program("body", 1, 1);
  body.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 0, 1));
  body.steps = {f.launch(kDouble, {0, 2}), f.launch(kDouble, {2, 1})};
  abi::Program& p = f.program("step", 1, 1);
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 0, 1));
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 1, 2));
  p.steps = {abi::CallStep{0, {0}, {2}}, abi::CallStep{0, {2}, {3}}, f.launch(kAdd, {3, 0, 1})};
  Executor run = executor(f, specs({"x"}));
  std::vector<Array> args = {floats({1, 2})};
  EXPECT_EQ(values(run.call(args)[0]), (Floats{17, 34}));
}

TEST(Executor, ResultsNeverAliasArguments) {
  // Results: x itself, the constant, an intermediate, and a second name for the first result.
  Fake f;
  Literal constant(DType::kF32, {2});
  constant.set_double(0, 5);
  f.module.constants.push_back(constant);
  f.n = f.dim(2);
  f.bytes = f.dim(8);
  abi::Program& p = f.program("step", 1, 4);
  p.slots.push_back(f.slot(Slot::Kind::kConstant, 0));
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 0, 0));
  for (auto [result, of] : {std::pair{1, 0}, {2, 5}, {3, 6}}) {
    p.slots[static_cast<size_t>(result)] = f.slot(Slot::Kind::kAlias, static_cast<uint32_t>(of));
  }
  p.steps = {f.launch(kDouble, {0, 6}), abi::CopyStep{1, 4}};
  std::vector<ArgumentSpec> arguments = specs({"x"});
  arguments[0].shape = {Dim(2)};
  Executor run = executor(f, arguments);
  std::vector<Array> args = {floats({1, 2})};
  std::vector<Array> out = run.call(args);
  EXPECT_EQ(values(out[0]), (Floats{1, 2}));
  EXPECT_EQ(values(out[1]), (Floats{5, 0}));
  EXPECT_EQ(values(out[2]), (Floats{2, 4}));
  EXPECT_EQ(values(out[3]), (Floats{1, 2}));
  EXPECT_NE(out[0].data(), args[0].data());
  EXPECT_NE(out[0].data(), out[3].data());
  EXPECT_TRUE(out[1].writable());
}

// c := x + c; returns 2x.
Fake updating() {
  Fake f;
  abi::Program& p = f.program("step", 2, 1);
  p.slots.push_back(f.slot(Slot::Kind::kTemp, 0, 0, 2));
  p.steps = {f.launch(kAdd, {0, 1, 3}), abi::CopyStep{3, 1}, f.launch(kDouble, {0, 2})};
  return f;
}

TEST(Executor, WritesThroughAndResolvesOverlap) {
  Fake f = updating();
  Executor run = executor(f, specs({"x", "c"}, {false, true}));
  Array c = floats({10, 20});
  std::vector<Array> args = {floats({1, 2}), c};
  EXPECT_EQ(values(run.call(args)[0]), (Floats{2, 4}));
  EXPECT_EQ(values(c), (Floats{11, 22}));

  args = {c, c};  // x is the value before the call
  EXPECT_EQ(values(run.call(args)[0]), (Floats{22, 44}));
  EXPECT_EQ(values(c), (Floats{22, 44}));

  Floats memory = {1, 2, 3};  // overlapping views
  args = {Array::borrow(DType::kF32, {2}, memory.data(), nullptr, false),
          Array::borrow(DType::kF32, {2}, memory.data() + 1, nullptr, true)};
  EXPECT_EQ(values(run.call(args)[0]), (Floats{2, 4}));
  EXPECT_EQ(memory, (Floats{1, 3, 5}));

  Executor both = executor(f, specs({"x", "c"}, {true, true}));
  args = {c, c};
  EXPECT_EQ(refusal([&] { both.call(args); }),
            "ValueError: step: writable arguments x and c share memory [argument_overlap]");
}

TEST(Executor, RefusesModulesThatWriteWhatTheyMayNot) {
  Fake f = updating();
  EXPECT_EQ(refusal([&] {
              executor(f, specs({"x", "c"}));
            }),
            "ValueError: module: the entry writes a read-only argument [module_check]");
}

TEST(Executor, FailedChecksNameTheOperation) {
  Fake f;
  f.program("step", 1, 1).steps = {f.launch(kFail, {0, 1})};
  Executor run = executor(f, specs({"x"}));
  std::vector<Array> args = {floats({1})};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(refusal([&] { run.call(args); }),
              "IndexError: an index is out of range in take of step [index_range]");
  }
  args = {floats({})};
  EXPECT_EQ(run.call(args)[0].count(), 0);
}

TEST(Executor, SetupRunsOnce) {
  // setup(w) = 2w, and w itself; step(x, 2w, w) = x + 2w
  Fake f;
  DimId two = f.dim(2), eight = f.dim(8);
  Fake fixed = f;
  fixed.n = two;
  fixed.bytes = eight;
  f.module.externals.push_back({"layer.w", DType::kF32, {two}});
  abi::Program& setup = f.program("setup", 1, 2);
  for (Slot& s : setup.slots) s.dims = {two}, s.bytes = eight;
  setup.slots[2] = fixed.slot(Slot::Kind::kAlias, 0);
  setup.steps = {fixed.launch(kDouble, {0, 1})};
  f.module.setup = 0;
  abi::Program& p = f.program("step", 3, 2);
  for (Slot& s : p.slots) s.dims = {two}, s.bytes = eight;
  p.steps = {fixed.launch(kAdd, {0, 1, 3}), abi::CopyStep{2, 4}};
  std::vector<ArgumentSpec> arguments = specs({"x"});
  arguments[0].shape = {Dim(2)};
  Executor run = executor(f, arguments);
  std::vector<Array> args = {floats({1, 2})};
  EXPECT_FALSE(run.bound());
  EXPECT_EQ(refusal([&] { run.call(args); }),
            "ValueError: step: its externals are not bound [external_missing]");
  std::vector<Array> wrong = {floats({1, 2, 3})};
  EXPECT_EQ(refusal([&] { run.bind(wrong); }),
            "ValueError: step: external layer.w: expected f32[2], got f32[3] [external_type]");
  std::vector<Array> weights = {floats({10, 20})};
  run.bind(weights);
  std::vector<Array> out = run.call(args);
  EXPECT_EQ(values(out[0]), (Floats{21, 42}));
  EXPECT_EQ(values(out[1]), (Floats{10, 20}));
}

// x + 2w, where setup computes 2w.
struct Doubled : Fake {
  Doubled() {
    n = dim(2);
    bytes = dim(8);
    module.externals.push_back({"w", DType::kF32, {n}});
    for (const char* name : {"setup", "step"}) {
      bool step = name[1] == 't';
      abi::Program& p = program(name, step ? 2 : 1, 1);
      p.steps = {step ? launch(kAdd, {0, 1, 2}) : launch(kDouble, {0, 1})};
    }
    module.setup = 0;
    module.entry = 1;
    module.setup_keys = {"twice w"};
  }
};

TEST(Executor, WhatSetupComputedIsShared) {
  Doubled f;
  std::vector<ArgumentSpec> arguments = specs({"x"});
  arguments[0].shape = {Dim(2)};
  Executor a = executor(f, arguments);
  Executor b = executor(f, arguments);
  Executor alone = executor(f, arguments);
  SetupResults shared;
  const std::vector<Array> first = {floats({10, 20})};
  const std::vector<Array> second = {floats({100, 200})};
  a.bind(first, &shared);
  ASSERT_EQ(shared.size(), 1u);
  // Other data under the same key shows that nothing was computed.
  b.bind(second, &shared);
  alone.bind(second);
  EXPECT_EQ(shared.size(), 1u);
  const std::vector<Array> args = {floats({1, 2})};
  EXPECT_EQ(values(a.call(args)[0]), (Floats{21, 42}));
  EXPECT_EQ(values(b.call(args)[0]), (Floats{21, 42}));
  EXPECT_EQ(values(alone.call(args)[0]), (Floats{201, 402}));
  f.module.setup_keys.push_back("one too many");
  EXPECT_NE(refusal([&] { executor(f, arguments); }).find("another number of keys"),
            std::string::npos);
}

TEST(Executor, EvaluatesHostSteps) {
  Fake f;
  f.program("step", 1, 1).steps = {abi::EvalStep{3, 4, {0}, {1}}};
  EvalHook hook = [](const abi::EvalStep& step, std::span<const Literal> in,
                     const Dim::Lookup& symbols) -> std::vector<Literal> {
    EXPECT_EQ(step.graph, 3u);
    EXPECT_EQ(symbols("n"), 2);
    EXPECT_FALSE(symbols("m").has_value());
    Literal out(DType::kF32, in[0].dims());
    for (int64_t i = 0; i < in[0].count(); ++i) out.set_double(i, -in[0].get_double(i));
    return {out};
  };
  Executor run = executor(f, specs({"x"}), hook);
  std::vector<Array> args = {floats({1, 2})};
  EXPECT_EQ(values(run.call(args)[0]), (Floats{-1, -2}));
}

TEST(Executor, NoImageForThisCpu) {
  Fake f = chain();
  f.module.images.push_back({"riscv64", std::vector<std::byte>(8), {0, 0, 0, 0}});
  EXPECT_FALSE(Executor::fits(f.module));
  std::string text = refusal([&] {
    Executor(std::make_shared<Module>(f.module), specs({"x", "y"}), nullptr);
  });
  EXPECT_EQ(text.rfind("UnsupportedError: step: has code for riscv64, this CPU (", 0), 0u) << text;
}

TEST(Executor, ManyThreads) {
  Fake f = chain();
  Executor run = executor(f, specs({"x", "y"}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&run, t] {
      for (int i = 0; i < 200; ++i) {
        auto n = static_cast<size_t>((i * 7 + t) % 40) * (i % 50 == 0 ? 2000 : 1);
        Floats x(n, static_cast<float>(t)), y(n, static_cast<float>(i));
        std::vector<Array> args = {floats(x), floats(y)};
        Floats expected(n, 2.0f * (2.0f * static_cast<float>(t) + static_cast<float>(i)));
        ASSERT_EQ(values(run.call(args)[0]), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Executor, CallOverhead) {
  Fake f = chain();
  Executor run = executor(f, specs({"x", "y"}));
  std::vector<Array> args = {floats(Floats(16, 1)), floats(Floats(16, 2))};
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) run.call(args);
    std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / 100);
  }
  RecordProperty("ns_per_call", std::to_string(best));
  std::printf("%.0f ns a call of 3 launches\n", best);
}

}  // namespace
}  // namespace tenon::runtime
