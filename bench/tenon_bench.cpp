// Tenon's rows of the benchmark table (README.md says what each computes). Prints one JSON array;
// names as arguments choose rows. `tenon_bench --child ROW` is one measurement in a fresh process.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tenon/pipelines/generate.h"
#include "tenon/tenon.h"

namespace tn = tenon;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kModel = "build/models/SmolLM2-135M-Instruct.Q4_1.gguf";

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Json row(const std::string& name, const std::string& unit, std::vector<double> values,
         const std::string& notes = "") {
  std::sort(values.begin(), values.end());
  const bool rate = unit.find("/s") != std::string::npos;
  return {{"name", name},
          {"unit", unit},
          {"min", rate ? values.back() : values.front()},
          {"median", values[values.size() / 2]},
          {"notes", notes}};
}

// Warm: three calls; then at least five, for about two seconds.
template <class Call>
Json steady(const std::string& name, const Call& call) {
  for (int i = 0; i < 3; ++i) call();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || (ms_since(start) < 2000 && times.size() < 2000)) {
    const auto begin = Clock::now();
    call();
    times.push_back(ms_since(begin));
  }
  return row(name, "ms", times);
}

tn::Tensor gelu(const tn::Tensor& x) {
  return x * (1.0f + tn::erf(x * 0.70710678118654752f)) * 0.5f;
}

tn::Tensor normal(const tn::Shape& shape, uint64_t seed = 0) {
  tn::Tensor x = tn::random::normal(tn::random::key(seed), shape);
  x.eval();
  return x;
}

template <class F>
Json unary(const std::string& name, const tn::Shape& shape, F fn) {
  const tn::Tensor x = normal(shape);
  auto fast = tn::compile(fn);
  return steady(name, [&] { fast(x).array(); });
}

Json matmul(const std::string& name, int64_t m, int64_t k, int64_t n) {
  // The right operand is a weight: packed once, when it is bound.
  const tn::Tensor w = normal({k, n}, 1);
  const tn::Tensor x = normal({m, k}, 2);
  tn::CompileOptions options;
  options.weights = {{"w", w}};
  auto fn = [k, n](const tn::Tensor& a) {
    return tn::matmul(a, tn::constant_external("w", tn::TensorLayout(tn::f32, {k, n})));
  };
  auto fast = tn::compile(fn, options)(tn::TensorLayout(tn::f32, {m, k}));
  return steady(name, [&] { fast(x).array(); });
}

Json gelu_fresh() {
  // The second call keeps the first result, so its memory is new.
  auto fast = tn::compile(gelu);
  const tn::Tensor x = normal({32, 1000, 4096});
  fast(normal({16})).array();
  std::vector<tn::Tensor> kept;
  std::vector<double> times;
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    kept.push_back(fast(x));
    kept.back().array();
    times.push_back(ms_since(start));
  }
  times.erase(times.begin());
  return row("gelu_fresh", "ms", times);
}

Json call_overhead() {
  auto fast = tn::compile(gelu)(tn::TensorLayout(tn::f32, {16}));
  const tn::Tensor x = normal({16});
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    for (int j = 0; j < 1000; ++j) fast(x);
    times.push_back(ms_since(start));  // µs a call
  }
  return row("call", "us", times);
}

// --- rows that need a process of their own ---

double child(const std::string& what, const std::string& cache) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      fmt::format("TENON_CACHE_DIR='{}' '{}' --child {}", cache, self, what);
  FILE* pipe = ::popen(command.c_str(), "r");
  double value = -1;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &value) != 1) value = -1;
  if (pipe != nullptr) ::pclose(pipe);
  if (value < 0) throw std::runtime_error("no result from " + command);
  return value;
}

Json in_children(const std::string& name, bool cached) {
  const std::string folder = "build/bench-cache";
  std::filesystem::remove_all(folder);
  if (cached) child(name, folder);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) times.push_back(child(name, cached ? folder : ""));
  std::filesystem::remove_all(folder);
  return row(cached ? name + "_cached" : name, "ms", times);
}

// Starts a program whose output goes to `out`.
pid_t spawn(std::vector<std::string> words, int out) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t child = -1;
  const int failure = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error("cannot run " + words[0]);
  return child;
}

// From before the fork to the result: the clock is one for all processes.
Json artifact() {
  const std::string path = "build/bench-gelu.tenon";
  tn::compile(gelu)(tn::TensorLayout(tn::f32, {"n"})).save(path);
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string loader = (folder / "load_gelu").string();
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    int out[2];
    if (::pipe(out) != 0) throw std::runtime_error("no pipe");
    const auto start = Clock::now();
    const pid_t child = spawn({loader, path}, out[1]);
    ::close(out[1]);
    std::array<char, 64> text{};
    const ssize_t got = ::read(out[0], text.data(), text.size() - 1);
    ::close(out[0]);
    ::waitpid(child, nullptr, 0);
    if (got <= 0) throw std::runtime_error("no result from " + loader);
    const auto end = std::chrono::nanoseconds(std::atoll(text.data()));
    times.push_back(
        std::chrono::duration<double, std::milli>(end - start.time_since_epoch()).count());
  }
  std::filesystem::remove(path);
  return row("artifact", "ms", times);
}

double first_call() {
  const tn::Tensor x = tn::tensor(std::vector<float>(1024, 0.5f));
  auto fast = tn::compile(gelu);
  const auto start = Clock::now();
  fast(x).array();
  return ms_since(start);
}

double compile_decode(int64_t blocks) {
  auto file = tn::formats::GgufFile::open(kModel);
  auto config = tn::pipelines::LlamaConfig::from_gguf(*file);
  config.blocks = blocks;
  const auto start = Clock::now();
  auto program =
      tn::pipelines::compile_llama(config, tn::f32, "decode", tn::Dim("batch", {.min = 1}), 1);
  return ms_since(start);
}

std::vector<Json> language_model() {
  auto file = tn::formats::GgufFile::open(kModel);
  auto model = tn::pipelines::LlamaModel::load(*file, tn::f32);
  std::vector<int32_t> prompt(128);
  for (int i = 0; i < 128; ++i) prompt[static_cast<size_t>(i)] = 1000 + 37 * i;
  std::vector<double> prompt_rates;
  std::vector<double> decode_rates;
  for (int i = 0; i < 6; ++i) {
    auto cache = model->new_cache();
    auto start = Clock::now();
    model->step(prompt, cache);
    const double prompt_ms = ms_since(start);
    start = Clock::now();
    for (int32_t t = 0; t < 64; ++t) {
      const int32_t token = 2000 + t;
      model->step({&token, 1}, cache);
    }
    if (i == 0) continue;  // warm-up
    prompt_rates.push_back(128e3 / prompt_ms);
    decode_rates.push_back(64e3 / ms_since(start));
  }
  return {row("llm_prompt", "tokens/s", prompt_rates), row("llm_decode", "tokens/s", decode_rates)};
}

tn::Tensor chain20(const tn::Tensor& in) {
  tn::Tensor x = in;
  for (int i = 0; i < 5; ++i) x = tn::sin(tn::exp(tn::tanh(x))) * 0.5f;
  return x;
}

using Rows = std::vector<std::pair<std::string, std::function<std::vector<Json>()>>>;

Rows all_rows() {
  const tn::Shape square = {4096, 4096};
  auto one = [](auto fn) { return [fn] { return std::vector<Json>{fn()}; }; };
  Rows rows;
  rows.emplace_back("gelu", one([] { return unary("gelu", {32, 1000, 4096}, gelu); }));
  rows.emplace_back("gelu_fresh", one(gelu_fresh));
  rows.emplace_back("softmax", one([=] {
                      return unary("softmax", square,
                                   [](const tn::Tensor& x) { return tn::softmax(x); });
                    }));
  rows.emplace_back("layer_norm", one([=] {
                      return unary("layer_norm", square, [](const tn::Tensor& x) {
                        return tn::layer_norm(x, tn::ones({4096}), tn::zeros({4096}));
                      });
                    }));
  rows.emplace_back("rms_norm", one([=] {
                      return unary("rms_norm", square, [](const tn::Tensor& x) {
                        return tn::rms_norm(x, tn::ones({4096}));
                      });
                    }));
  rows.emplace_back("chain20", one([] { return unary("chain20", {1024, 1024}, chain20); }));
  for (auto [m, k, n] : {std::array<int64_t, 3>{2048, 2048, 2048},
                         {128, 576, 1536},
                         {8, 4096, 4096},
                         {1, 4096, 4096},
                         {64, 64, 64}}) {
    const std::string name = fmt::format("matmul_{}x{}x{}", m, k, n);
    rows.emplace_back(name, one([=, m = m, k = k, n = n] { return matmul(name, m, k, n); }));
  }
  rows.emplace_back("sum_axis0", one([=] {
                      return unary("sum_axis0", square,
                                   [](const tn::Tensor& x) { return tn::sum(x, 0); });
                    }));
  rows.emplace_back("sum_axis1", one([=] {
                      return unary("sum_axis1", square,
                                   [](const tn::Tensor& x) { return tn::sum(x, 1); });
                    }));
  rows.emplace_back("var_all", one([=] {
                      return unary("var_all", square,
                                   [](const tn::Tensor& x) { return tn::var(x); });
                    }));
  rows.emplace_back("transpose_add", one([=] {
                      const tn::Tensor y = normal(square, 3);
                      return unary("transpose_add", square,
                                   [y](const tn::Tensor& x) { return tn::transpose(x) + y; });
                    }));
  rows.emplace_back("cumsum", one([=] {
                      return unary("cumsum", square,
                                   [](const tn::Tensor& x) { return tn::cumsum(x, 1); });
                    }));
  rows.emplace_back("first_call", one([] { return in_children("first_call", false); }));
  rows.emplace_back("first_call_cached", one([] { return in_children("first_call", true); }));
  rows.emplace_back("call", one(call_overhead));
  rows.emplace_back("artifact", one(artifact));
  for (const char* name : {"compile_decode", "compile_decode_60"}) {
    rows.emplace_back(name, one([name] { return in_children(name, false); }));
  }
  rows.emplace_back("llm", language_model);
  return rows;
}

// "llm" gives two rows: llm_prompt and llm_decode choose it.
bool chosen(const std::string& name, const std::vector<std::string>& names) {
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
    return wanted == name || (name == "llm" && wanted.rfind("llm_", 0) == 0);
  });
}

// One measurement in this process, which is fresh.
double measure_here(const std::string& name) {
  if (name == "compile_decode") return compile_decode(30);
  if (name == "compile_decode_60") return compile_decode(60);
  return first_call();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> names(argv + 1, argv + argc);
  if (names.size() == 2 && names[0] == "--child") {
    std::printf("%.6f\n", measure_here(names[1]));
    return 0;
  }
  Json out = Json::array();
  for (const auto& [name, measure] : all_rows()) {
    if (!chosen(name, names)) continue;
    std::fprintf(stderr, "%s\n", name.c_str());
    try {
      for (Json& line : measure()) out.push_back(std::move(line));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    }
  }
  std::printf("%s\n", out.dump(1).c_str());
}
