// What is part of a program and what is not: static arguments, captured values, weights, bodies;
// and what many programs, files and threads do to each other.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "paths.h"
#include "tenon/program/program.h"
#include "tests/refusal.h"

namespace tenon {

struct AnchorConfig {
  int k = 2;
  std::vector<double> table;
  std::optional<std::string> name;
};
TENON_STRUCT(AnchorConfig, k, table, name)

enum class Mode { kPlain, kDoubled };

namespace anchors {
namespace {

using Floats = std::vector<float>;

float first(const Tensor& x) { return x.to_vector<float>().at(0); }
const TensorLayout kOne(f32, {1});

// PyTorch 1.5 and MAX 5: a static of any kind takes part, wherever it stands; a program that was
// made for one value refuses another and names it.
TEST(Statics, OfEveryKindTakePart) {
  const auto f = compile([](const Tensor& x, Mode mode, const std::vector<Mode>& more,
                            const AnchorConfig& config, std::optional<bool> flag) {
    Tensor y = mode == Mode::kDoubled ? x * 2 : x * 1;
    for (const Mode m : more) y = m == Mode::kDoubled ? y * 2 : y;
    for (const double v : config.table) y = y + v;
    return flag.value_or(false) ? -y : y * config.k;
  });
  const Tensor x = tensor({3.0f});
  const AnchorConfig config{2, {1, 2}, "a"};
  const std::vector<Mode> plain = {Mode::kPlain}, doubled = {Mode::kDoubled};
  const std::optional<bool> none;
  EXPECT_EQ(first(f(x, Mode::kPlain, plain, config, none)), 12);
  EXPECT_EQ(first(f(x, Mode::kDoubled, plain, config, none)), 18);
  EXPECT_EQ(first(f(x, Mode::kPlain, doubled, config, none)), 18);
  EXPECT_EQ(first(f(x, Mode::kPlain, plain, AnchorConfig{3, {1, 2}, "a"}, none)), 18);
  EXPECT_EQ(first(f(x, Mode::kPlain, plain, AnchorConfig{2, {1, 3}, "a"}, none)), 14);
  EXPECT_EQ(first(f(x, Mode::kPlain, plain, config, std::optional(true))), -6);
  EXPECT_EQ(first(f(x, Mode::kPlain, plain, config, std::optional(false))), 12);
  EXPECT_EQ(f.cached(), 7u);

  const auto program = compile(
      [](const Tensor& in, const AnchorConfig& c, Mode) { return in * c.k + c.table.at(1); },
      {.argument_names = {"x", "config", "mode"}})(kOne, config, Mode::kPlain);
  EXPECT_EQ(first(program(x, config, Mode::kPlain)), 8);
  AnchorConfig changed = config;
  changed.k = 5;
  expect_refused([&] { program(x, changed, Mode::kPlain); },
                 {"ValueError", "argument config.k: compiled for 2, got 5"});
  changed = config;
  changed.table[1] = 2.5;
  expect_refused([&] { program(x, changed, Mode::kPlain); }, {"config.table.1", "2.0", "2.5"});
  changed = config;
  changed.name.reset();
  expect_refused([&] { program(x, changed, Mode::kPlain); }, {"config.name"});
  expect_refused([&] { program(x, config, Mode::kDoubled); }, {"argument mode"});
  changed.table.push_back(3);
  expect_refused([&] { program(x, changed, Mode::kPlain); }, {"config.table"});
}

// B011, B051: what a function captures by value is part of it; numbers are compared by their bits.
TEST(Statics, NumbersAreComparedExactly) {
  int traces = 0;
  const auto f = compile([&traces](const Tensor& x, double k) {
    ++traces;
    return copysign(x, k);
  });
  EXPECT_EQ(first(f(tensor({2.0f}), 0.0)), 2);
  EXPECT_EQ(first(f(tensor({2.0f}), -0.0)), -2);
  EXPECT_EQ(traces, 2);
  f(tensor({2.0f}), std::nan(""));
  f(tensor({2.0f}), std::nan(""));
  EXPECT_EQ(traces, 3);
  const auto g = compile([](const Tensor& x, uint64_t k) { return cast(x, u64) + k; });
  EXPECT_EQ(g(tensor({1.0f}), ~0ull).item<uint64_t>(), 0u);
}

// PyTorch 1.5: a saved program holds what was captured when it was traced, and nothing more of a
// captured tensor than what it reads.
TEST(Captures, AreTheValuesOfTracing) {
  int k = 2;
  const auto program = compile([&k](const Tensor& x) { return x * k; })(kOne);
  k = 100;
  const std::string path = temporary("captured.tenon");
  program.save(path);
  const auto loaded = program::Program::load(path);
  EXPECT_EQ(first(Tensor(loaded.execute_raw(std::vector{tensor({3.0f}).array()})[0])), 6);

  Tensor weights = tensor({1.0f, 2.0f});
  const auto reader = compile([&weights](const Tensor& x) { return x + weights; });
  EXPECT_EQ(first(reader(tensor({1.0f, 1.0f}))), 2);
  weights = weights * 10;  // another tensor: the program keeps the one that it captured
  EXPECT_EQ(first(reader(tensor({1.0f, 1.0f}))), 2);

  const Tensor big = zeros({4 << 20}).eval();
  const Tensor part = Tensor(big["0:3"]).eval();
  const auto small = compile([&part](const Tensor& x) { return x + part; })(TensorLayout(f32, {3}));
  small.save(path);
  EXPECT_LT(std::filesystem::file_size(path), 64u << 10);
  std::filesystem::remove(path);
}

// MAX 1 to 4: bodies are known by what they compute, prefixes add up, inlined or not, saved or not.
TEST(Bodies, AreWhatTheyCompute) {
  const auto twice = [](const Tensor& x) {
    const auto f = as_subgraph([](const Tensor& v) { return v * 2; }, {.name = "f"});
    const auto g = as_subgraph([](const Tensor& v) { return v * 3; }, {.name = "f"});
    return g(f(x));
  };
  expect_on_every_path(
      [twice](const Tensors& x) {
        if (Trace::current() != nullptr) return twice(x[0]);
        const DisableCompile direct;
        return twice(x[0]);
      },
      {tensor({1.0f})}, {6});
  // Statics of a body are compared by value, not by how they print.
  std::vector<double> table(5000, 1.0), other = table;
  other[2500] = 2;
  const auto body = [](const Tensor& x, const std::vector<double>& t) { return x * t[2500]; };
  const auto f = [&](const Tensor& x) {
    const auto block = as_subgraph(body, {.name = "block", .key = "same"});
    return block(block(x, table), other);
  };
  EXPECT_EQ(first(compile(f)(kOne)(tensor({3.0f}))), 6);
}

Tensor weighted(const Tensor& x) { return x * constant_external("w", kOne, true); }

// MAX 4, 6 and 30: weights of a saved program are found under the prefixes of their calls, checked
// whole when they are given: all missing names at once, dtype, shape, and names that nothing reads.
TEST(Weights, OfASavedProgram) {
  const auto f = [](const Tensor& x) {
    const auto outer = [](const Tensor& y) {
      return as_subgraph(weighted, {.prefix = "b."})(as_subgraph(weighted, {.prefix = "a."})(y));
    };
    return as_subgraph(outer, {.prefix = "L0."})(x);
  };
  const std::string path = temporary("weights.tenon");
  for (const bool shared : {true, false}) {
    CompileOptions options;
    options.name = "net";
    options.allow_subgraphs = shared;
    compile(f, options)(kOne).save(path);
    for (const bool data_only : {true, false}) {
      const auto load = [&](const program::ExternalArrays& externals) {
        return program::Program::load(path, {.data_only = data_only, .externals = externals});
      };
      const runtime::Array two = tensor({2.0f}).array(), ten = tensor({10.0f}).array();
      const std::vector<runtime::Array> x{tensor({1.0f}).array()};
      EXPECT_EQ(first(Tensor(load({{"L0.a.w", two}, {"L0.b.w", ten}}).execute_raw(x)[0])), 20);
      expect_refused([&] { load({}).execute_raw(x); }, {"KeyError", "L0.a.w", "L0.b.w"});
      expect_refused([&] { load({{"L0.a.w", two}}); }, {"KeyError", "missing", "L0.b.w"});
      expect_refused(
          [&] {
            load({{"L0.a.w", two}, {"L0.b.w", tensor({1}).array()}});
          },
          {"ValueError", "L0.b.w", "f32[1]", "i32[1]"});
      expect_refused(
          [&] {
            load({{"L0.a.w", two}, {"L0.b.w", tensor({1.0f, 2.0f}).array()}});
          },
          {"ValueError", "L0.b.w", "f32[1]", "f32[2]"});
      expect_refused(
          [&] {
            load({{"L0.a.w", two}, {"L0.b.w", ten}, {"L0.c.w", ten}});
          },
          {"KeyError", "L0.c.w", "did you mean"});
    }
  }
  std::filesystem::remove(path);
}

// MAX 25, 26, 31: refused while tracing, by op, dtype and the user's line.
TEST(Errors, ComeWhileTracing) {
  const auto traced = [](DType dtype, const std::function<Tensor(const Tensor&)>& fn) {
    return refusal([&] { stage(fn)(TensorLayout(dtype, {"n", 4})); });
  };
  for (const DType dtype : {i32, u8, bool_}) {
    for (const auto& [op, fn] : std::map<std::string, std::function<Tensor(const Tensor&)>>{
             {"exp", [](const Tensor& x) { return exp(x); }},
             {"log", [](const Tensor& x) { return log(x); }},
             {"sqrt", [](const Tensor& x) { return sqrt(x); }},
             {"gelu", [](const Tensor& x) { return gelu(x); }}}) {
      const std::string text = traced(dtype, fn);
      if (text == "ran") continue;  // integers become floats
      EXPECT_EQ(dtype, bool_);
      EXPECT_NE(text.find("TypeError: " + op + ": "), std::string::npos) << text;
      EXPECT_NE(text.find(name(dtype)), std::string::npos) << text;
      EXPECT_NE(text.find("programs_test.cpp:"), std::string::npos) << text;
    }
  }
  EXPECT_NE(traced(bool_, [](const Tensor& x) { return -x; }).find("neg: "), std::string::npos);
  EXPECT_EQ(traced(u8, [](const Tensor& x) { return -x; }), "ran");
  EXPECT_EQ(traced(bool_, [](const Tensor& x) { return sum(x) + sum(mean(x * x)); }), "ran");
  EXPECT_NE(traced(f32, [](const Tensor& x) { return softmax(x, 3); }).find("axis 3 for rank 2"),
            std::string::npos);
  EXPECT_EQ(traced(i32, [](const Tensor& x) { return (x & 3) | (~x ^ 5); }), "ran");
  EXPECT_NE(traced(f32, [](const Tensor& x) { return x & 3; }).find("bitwise_and: "),
            std::string::npos);
  expect_refused([] { TensorLayout("float33", {2}); }, {"ValueError", "float33"});
  expect_refused([] { TensorLayout(f32, {-2}); }, {"ValueError", "-2"});
  expect_refused([] { cpu(1); }, {"ValueError", "1"});
  expect_refused([] { Device("gpu"); }, {"UnsupportedError", "GPU"});
  expect_refused([] { compile([](const Tensor&) { return 5; })(kOne); },
                 {"TypeError", "returns no tensor", "5"});
  EXPECT_EQ(zeros({0, 3}).str(), "tensor([], f32[0, 3], cpu)");
}

// B009: one calling convention for optional arguments.
TEST(Calls, OptionalArguments) {
  const auto f =
      compile([](const Tensor& x, const std::optional<Tensor>& y) { return y ? x + *y : x + 1; });
  const Tensor one = tensor(1.0f), two = tensor(2.0f);
  EXPECT_EQ(first(f(one, std::optional<Tensor>())), 2);
  EXPECT_EQ(first(f(one, std::optional<Tensor>(two))), 3);
  EXPECT_EQ(first(f(two, std::optional<Tensor>())), 3);
  EXPECT_EQ(f.cached(), 2u);
  const auto g = compile([](const std::pair<Tensor, Tensor>& t) { return t.first + t.second; });
  EXPECT_EQ(first(g(std::pair(one, two))), 3);
}

// B039: groups of any size, called twice.
TEST(Fusion, HundredsOfTerms) {
  for (const int terms : {10, 99, 100, 101, 150, 600}) {
    const auto f = [terms](const Tensor& p) {
      const Tensor s = p[0], t = p[1];
      Tensor acc = s * 0;
      for (int i = 0; i < terms; ++i) {
        const Tensor z = (2.0f * float(i) - (s * float(i) + t)) / 10;
        acc = acc + (-0.5f * z * z - std::log(10.0f));
      }
      return acc;
    };
    const auto g = compile(f);
    const Tensor p = tensor({{0.5f, 1.0f, 2.0f}, {1.0f, 0.0f, -3.0f}});
    const Floats once = g(p).to_vector<float>(), again = g(p).to_vector<float>();
    EXPECT_EQ(once, again);
    const Floats plain = f(p).to_vector<float>();
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(once[i], plain[i], std::fabs(plain[i]) * 1e-5);
  }
}

// B056 and B112: half formats everywhere; random numbers of theirs stay in range.
TEST(Halves, WorkAsTheOthers) {
  for (const DType dtype : {f16, bf16}) {
    SCOPED_TRACE(name(dtype));
    const double unit = dtype == f16 ? 1.0 / 1024 : 1.0 / 128;
    std::vector<double> wanted;
    const auto f = [](const Tensor& x, DType d) {
      return cast(softmax(matmul(exp(cast(x, d)), ones({8, 8}, d) / 8)), f32);
    };
    const Tensor x = (cast(arange(64), f32) / 32 - 1).reshape({8, 8}).eval();
    const Tensor exact = f(x, f32);
    for (const float v : exact.to_vector<float>()) wanted.push_back(v);
    expect_near_on_every_path([&](const Tensors& in) { return f(in[0], dtype); }, {x}, wanted,
                              3 * unit, {TensorLayout(f32, {"n", 8})});
    const auto draw = compile([dtype](const Tensor& key) {
      const Tensor u = random::uniform(key, {200000}, dtype);
      const Tensor z = random::normal(key, {200000}, dtype);
      return Tensors{min(u),
                     max(u),
                     mean(cast(u, f32)),
                     all(isfinite(z)),
                     mean(cast(z, f32)),
                     stddev(cast(z, f32)),
                     u["0:1"],
                     z["0:1"]};
    });
    const Tensors got = draw(random::key(3));
    EXPECT_GE(got[0].item<float>(), 0);
    EXPECT_LT(got[1].item<float>(), 1);
    EXPECT_NEAR(got[2].item<float>(), 0.5, 0.01);
    EXPECT_TRUE(got[3].item<bool>());
    EXPECT_NEAR(got[4].item<float>(), 0, 0.02);
    EXPECT_NEAR(got[5].item<float>(), 1, 0.02);
    EXPECT_EQ(got[6].dtype(), dtype);
    EXPECT_EQ(got[7].dtype(), dtype);
  }
}

// B049: one promotion, eager and traced: the same dtype or the same refusal for every pair.
TEST(Dtypes, PromoteAlikeEverywhere) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (int j = 0; j < kDTypeCount; ++j) {
      const auto a = static_cast<DType>(i), b = static_cast<DType>(j);
      const auto outcome = [&](const std::function<Tensor(const Tensor&, const Tensor&)>& fn) {
        const auto run = [&](const Tensor& x, const Tensor& y) {
          try {
            return std::string(name(fn(x, y).dtype()));
          } catch (const Error& error) {
            return error.message();
          }
        };
        const std::string eager = run(zeros({2, 2}, a), zeros({2, 2}, b));
        std::string traced;
        stage([&](const Tensor& x, const Tensor& y) {
          traced = run(x, y);
          return x;
        })(TensorLayout(a, {2, 2}), TensorLayout(b, {2, 2}));
        EXPECT_EQ(eager, traced) << name(a) << " and " << name(b);
      };
      outcome([](const Tensor& x, const Tensor& y) { return x + y; });
      outcome([](const Tensor& x, const Tensor& y) { return matmul(x, y); });
      outcome([](const Tensor& x, const Tensor& y) { return where(true, x, y); });
    }
  }
}

// B040: one loaded program on many threads, with sizes of their own.
TEST(Threads, ShareALoadedProgram) {
  const std::string path = temporary("threads.tenon");
  compile([](const Tensor& x) { return softmax(matmul(x, transpose(x))) + cumsum(sum(x, 1), 0); })(
      TensorLayout(f32, {"n", 8}))
      .save(path);
  const auto program = program::Program::load(path);
  std::vector<Floats> wanted;
  std::vector<Tensor> inputs;
  for (int64_t n = 1; n <= 8; ++n) {
    inputs.push_back(Tensor(sin(iota({n, 8}, 0, f32) + iota({n, 8}, 1, f32))).eval());
    wanted.push_back(
        Tensor(program.execute_raw(std::vector{inputs.back().array()})[0]).to_vector<float>());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto other = t % 2 == 0 ? program : program::Program::load(path);
      for (size_t i = 0; i < 100; ++i) {
        const size_t n = (t + i) % 8;
        const auto got = other.execute_raw(std::vector{inputs[n].array()});
        wrong += Tensor(got[0]).to_vector<float>() != wanted[n];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  std::filesystem::remove(path);
}

// B113 and B097: tracing and compiling on many threads; functions that have gone leave nothing that
// a later one could find.
TEST(Threads, TraceAndCompileAtOnce) {
  const auto shared = compile([](const Tensor& x, int k) { return x * k + 1; });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto own = compile([k = t * 100 + i](const Tensor& x) { return x + k; });
        wrong += first(own(zeros({1, 8}))) != float(t * 100 + i);
        wrong += first(shared(ones({1 + i % 5}), t % 3)) != float(t % 3 + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// B142: functions of one file share constants and still compute what they computed.
TEST(Files, SeveralFunctionsShareConstants) {
  const Tensor w1 = sin(cast(arange(64), f32)).reshape({8, 8}).eval();
  const Tensor w2 = cos(cast(arange(64), f32)).reshape({8, 8}).eval();
  const auto a = compile([&](const Tensor& x) { return matmul(relu(matmul(x, w1)), w2); },
                         {.name = "a"})(TensorLayout(f32, {4, 8}));
  const auto b = compile([&](const Tensor& x) { return matmul(relu(matmul(x, w2)), w1); },
                         {.name = "b"})(TensorLayout(f32, {2, 8}));
  const std::string path = temporary("shared.tenon");
  save(path, {a.executable(), b.executable()});
  const std::vector<runtime::Array> x{ones({4, 8}).array()}, y{ones({2, 8}).array()};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(program::Program::load(path, {.program = "a"})
                    .execute_raw(x)[0]
                    .to_literal()
                    .same(a.execute_raw(x)[0].to_literal()));
    EXPECT_TRUE(program::Program::load(path, {.program = "b"})
                    .execute_raw(y)[0]
                    .to_literal()
                    .same(b.execute_raw(y)[0].to_literal()));
  }
  std::filesystem::remove(path);
}

// PyTorch 1.5: a damaged file is refused, and the whole one loaded after it is right.
TEST(Files, ADamagedOneLeavesNoTrace) {
  const std::string path = temporary("whole.tenon"), damaged = temporary("damaged.tenon");
  compile([](const Tensor& x) { return x * 3.0f; })(kOne).save(path);
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::vector<runtime::Array> x{tensor({2.0f}).array()};
  for (size_t at = 40; at < bytes.size(); at += bytes.size() / 23) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 4);
    std::ofstream(damaged, std::ios::binary) << other;
    expect_refused([&] { program::Program::load(damaged); }, {"FormatError", damaged});
    EXPECT_EQ(first(Tensor(program::Program::load(path).execute_raw(x)[0])), 6);
  }
  std::filesystem::remove(path);
  std::filesystem::remove(damaged);
}

int64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// B107, B127 and B147: programs that have gone take their code with them.
TEST(Growth, ManySmallPrograms) {
  const auto round = [](int64_t n) {
    const auto f = compile([](const Tensor& x) {
      const std::vector<Tensor> parts = split(x + x, 2);
      return concatenate({parts[1], parts[0]});
    });
    EXPECT_EQ(first(f(ones({2 * n}))), 2);
  };
  for (int64_t n = 1; n <= 20; ++n) round(n);
  const int64_t before = mappings();
  for (int64_t n = 1; n <= 200; ++n) round(n % 20 + 1);
  EXPECT_LE(mappings(), before + 20);
}

// B089: thousands of uses of one value; -0 + 0 is 0, so not one addition may go.
TEST(Growth, ManyUsesOfOneValue) {
  const Tensor zero = tensor(0.0f);
  const auto f = compile([&zero](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 4000; ++i) y = y + zero;
    return y;
  });
  expect_values(f(tensor({1.0f, -0.0f})), {1, 0});
}

}  // namespace
}  // namespace anchors
}  // namespace tenon
