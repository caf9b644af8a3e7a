// Rows about starting and calling: most are measured in processes of their own.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "harness.h"
#include "tenon/pipelines/llama/model.h"

namespace tenon::bench {
namespace {

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
  auto file = tn::formats::GgufFile::open(model_file("Q4_1"));
  auto config = tn::pipelines::LlamaConfig::from_gguf(*file);
  config.blocks = blocks;
  const auto start = Clock::now();
  auto program =
      tn::pipelines::compile_llama(config, tn::f32, "decode", tn::Dim("batch", {.min = 1}), 1);
  return ms_since(start);
}

}  // namespace

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

void add_process_rows(Rows& rows) {
  add_row(rows, "first_call", [] { return in_children("first_call", false); });
  add_row(rows, "first_call_cached", [] { return in_children("first_call", true); });
  add_row(rows, "call", call_overhead);
  add_row(rows, "artifact", artifact);
  for (const char* name : {"compile_decode", "compile_decode_60"}) {
    add_row(rows, name, [name] { return in_children(name, false); });
  }
}

double measure_here(const std::string& name) {
  if (name == "compile_decode") return compile_decode(30);
  if (name == "compile_decode_60") return compile_decode(60);
  if (name == "llm_start") return measure_start(/*keep_packed=*/false);
  if (name == "llm_start_kept") return measure_start(/*keep_packed=*/true);
  return first_call();
}

}  // namespace tenon::bench
