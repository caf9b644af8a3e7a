// One artifact with code for several machines, run as a whole on each: here, and on AArch64 under
// emulation, by the same run-time sources.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/tenon.h"

namespace tenon {
namespace {

#ifdef TENON_RUN_SAVED_AARCH64

using Programs = std::vector<std::shared_ptr<const Executable>>;

const Shape kRows = {Dim("n"), Dim(8)};
const TensorLayout kX(f32, kRows);

CompileOptions named(const std::string& name) {
  CompileOptions options;
  options.name = name;
  return options;
}

// Each of the steps that a plan has: kernels of every kind, calls of bodies, evaluated operations,
// copies, constants of all sizes, weights, writable arguments.
Programs programs() {
  Programs all;
  auto add = [&](const std::string& name, const auto& fn, const auto&... layouts) {
    all.push_back(compile(fn, named(name))(layouts...).executable());
  };
  add(
      "arithmetic", [](const Tensor& x, const Tensor& y) { return (x * 2 - y) / (y * y + 1); }, kX,
      kX);
  add(
      "mathematics",
      [](const Tensor& x) {
        return std::vector<Tensor>{
            exp(x), tanh(x), erf(x), sin(x), log(abs(x) + 1), sqrt(abs(x)), pow(abs(x) + 1, 1.5f)};
      },
      kX);
  add(
      "doubles", [](const Tensor& x) { return exp(x) + cos(x) * floor(x); },
      TensorLayout(f64, kRows));
  add(
      "halves", [](const Tensor& x, const Tensor& y) { return cast(x, bf16) * cast(y, bf16) + 1; },
      TensorLayout(f16, kRows), kX);
  add(
      "integers",
      [](const Tensor& x, const Tensor& y) {
        return std::vector<Tensor>{x * y, (x + y) % 3, x << 2, (x ^ y) & 5, cast(x < y, u8)};
      },
      TensorLayout(i32, kRows), TensorLayout(i32, kRows));
  add(
      "rows", [](const Tensor& x) { return softmax(x) + layer_norm(x, ones({8}), zeros({8})); },
      kX);
  add(
      "columns",
      [](const Tensor& x) {
        return std::vector<Tensor>{sum(x, 0), argmax(x, 1), cumsum(x, 1)};
      },
      kX);
  add(
      "product", [](const Tensor& x, const Tensor& w) { return matmul(x, w) + 1; }, kX,
      TensorLayout(f32, {8, 24}));
  add(
      "weights",
      [](const Tensor& x) {
        const Tensor w = constant_external("w", TensorLayout(f32, {8, 33}));
        return maximum(matmul(x, w), 0);
      },
      kX);
  add(
      "moved",
      [](const Tensor& x) {
        return concatenate({transpose(flip(x)), transpose(x)}, 0);
      },
      kX);
  add(
      "table", [](const Tensor& i) { return take(arange(100, f32) * arange(100, f32), i); },
      TensorLayout(i64, {"n"}));
  add(
      "constants",
      [](const Tensor& x) {
        return x + sum(reshape(tensor(std::vector<float>(8000, 0.5f)), {1000, 8}), 0);
      },
      kX);
  add(
      "bodies",
      [](const Tensor& x) {
        const auto block = as_subgraph([](const Tensor& v) { return tanh(v) * sum(v, 1, true); });
        return block(block(x));
      },
      kX);
  add(
      "written",
      [](Tensor cache, const Tensor& row, const Tensor& at) {
        cache[at] = row;
        return sum(cache);
      },
      BufferLayout(f32, {6, 8}), TensorLayout(f32, {8}), TensorLayout(i64, {}));
  add(
      "random",
      [](const Tensor& key) {
        return std::vector<Tensor>{random::uniform(key, {5, 3}), random::normal(key, {11})};
      },
      TensorLayout(u32, {2}));
  return all;
}

// What `command` prints. Fails the test when it ends with another status than 0.
std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  char piece[4096];
  for (size_t got; (got = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, got);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << text;
  return text;
}

std::string saved() {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "cross.tenon").string();
  save(path, programs(), {"x86-64-v3", "x86-64", "aarch64"});
  return path;
}

// The text without the level that ran.
std::string results_of(std::string text, const std::string& level) {
  size_t programs = 0;
  for (size_t at; (at = text.find(" " + level + "\n")) != std::string::npos; ++programs) {
    text.erase(at, level.size() + 1);
  }
  EXPECT_GE(programs, 15u) << level << "\n" << text;
  return text;
}

#endif

// The code of x86-64-v3: both machines multiply and add at once.
TEST(SavedForAArch64, GivesTheBitsOfX86) {
#ifndef TENON_RUN_SAVED_AARCH64
  GTEST_SKIP() << "clang, qemu or Debian's libraries for AArch64 are not installed: ./dev setup";
#else
  const std::string path = saved();
  const std::string here = output_of("TENON_ISA=avx2 " TENON_RUN_SAVED " " + path);
  const std::string there = output_of(TENON_QEMU_AARCH64 " " TENON_RUN_SAVED_AARCH64 " " + path);
  EXPECT_EQ(results_of(there, "aarch64"), results_of(here, "x86-64-v3"));
#endif
}

}  // namespace
}  // namespace tenon
