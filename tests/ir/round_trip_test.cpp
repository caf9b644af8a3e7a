#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sample_ops.h"
#include "tenon/ir/text.h"
#include "tenon/ir/verify.h"

namespace tenon::ir {
namespace {

constexpr int kGraphs = 300;

uint64_t seed() {
  const char* given = std::getenv("TENON_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20260701;
}

TEST(RoundTrip, RandomGraphsReadBackTheSame) {
  for (int i = 0; i < kGraphs; ++i) {
    SCOPED_TRACE("TENON_SEED=" + std::to_string(seed() + i));
    std::mt19937_64 random(seed() + i);
    const GraphPtr graph = ir_test::random_graph(random, 1 + i % 40);
    for (bool generic : {false, true}) {
      const PrintOptions options{.generic = generic, .locations = true, .full_constants = true};
      const std::string text = print(graph, options);
      GraphPtr back;
      ASSERT_NO_THROW(back = parse(text)) << text;
      ASSERT_EQ(canonical(back), canonical(graph)) << text;
      ASSERT_EQ(print(back, options), text);
      ASSERT_EQ(back->param_names, graph->param_names);
      ASSERT_EQ(back->result_names, graph->result_names);
      ASSERT_NO_THROW(verify(back, Stage::kTraced)) << text;
    }
  }
}

// Every prefix and every damaged byte of a text is read or refused, never a crash.
TEST(RoundTrip, DamagedTextIsReadOrRefused) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 6; ++i) {
    SCOPED_TRACE("TENON_SEED=" + std::to_string(seed()));
    const GraphPtr graph = ir_test::random_graph(random, 6);
    const std::string text = print(graph, {.generic = i % 2 == 1, .full_constants = true});
    int refused = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      std::string damaged = i < 2 ? text.substr(0, at) : text;
      if (i >= 2) damaged[at] = static_cast<char>(random());
      try {
        parse(damaged);
      } catch (const FormatError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 0);
  }
}

const char* find_mlir_opt() {
  for (const char* path : {"/usr/bin/mlir-opt-19", "/usr/lib/llvm-19/bin/mlir-opt"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return nullptr;
}

TEST(RoundTrip, StockMlirOptReadsTheGenericForm) {
  const char* tool = find_mlir_opt();
  if (tool == nullptr) GTEST_SKIP() << "mlir-opt of LLVM 19 is not installed (mlir-19-tools)";
  const auto folder = std::filesystem::temp_directory_path();
  const auto path =
      folder / ("tenon_round_trip_" + std::to_string(std::random_device()()) + ".mlir");
  std::mt19937_64 random(seed());
  std::ofstream out(path);
  for (int i = 0; i < 40; ++i) {
    out << print(ir_test::random_graph(random, 30),
                 {.generic = true, .locations = true, .full_constants = i % 2 == 0});
  }
  out.close();
  const std::string command =
      std::string(tool) + " --allow-unregistered-dialect -o /dev/null " + path.string() + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << said.substr(0, 2000);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::ir
