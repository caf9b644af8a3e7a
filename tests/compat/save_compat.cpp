// save_compat FOLDER: writes FOLDER/VERSION/programs.tenon and results.txt, where there are none.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../cross/calls_text.h"
#include "tenon/program/version.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;

CompileOptions named(const std::string& name) {
  CompileOptions options;
  options.name = name;
  return options;
}

// Kernels, a product with a weight of its own layout, constants inside, a shared body, a writable
// argument; results are exact in every order of evaluation.
std::vector<std::shared_ptr<const Executable>> programs() {
  const TensorLayout x(f32, {"n", 8});
  auto step =
      compile([](const Tensor& a) { return (a * 2 - 1) / 4 + sum(a, 1, true); }, named("step"))(x);
  auto product = compile(
      [](const Tensor& a) {
        const Tensor w = constant_external("w", TensorLayout(f32, {8, 24}));
        return maximum(matmul(a, w), 0) + sum(arange(100, f32));
      },
      named("product"))(x);
  auto bodies = compile(
      [](const Tensor& a) {
        const auto block = as_subgraph([](const Tensor& v) { return abs(v) + transpose(flip(v)); });
        return block(block(a));
      },
      named("bodies"))(TensorLayout(f32, {"n", "n"}));
  auto written = compile(
      [](Tensor cache, const Tensor& row, const Tensor& at) {
        cache[at] = row;
        return argmax(cache, 1);
      },
      named("written"))(BufferLayout(f32, {6, 8}), TensorLayout(f32, {8}), TensorLayout(i64, {}));
  return {step.executable(), product.executable(), bodies.executable(), written.executable()};
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) return 2;
  const fs::path folder = fs::path(argv[1]) / program::kVersion;
  const std::string path = (folder / "programs.tenon").string();
  if (fs::exists(path)) {
    std::fprintf(stderr, "%s is there already\n", path.c_str());
    return 1;
  }
  fs::create_directories(folder);
  save(path, programs(), {"x86-64-v3", "x86-64"});
  std::ofstream results(folder / "results.txt");
  const auto artifact = program::Artifact::open(path);
  for (const program::ProgramInfo& info : artifact->programs()) {
    const std::string& name = info.signature.function;
    results << name << "\n" << calls_text(program::Program::load(artifact, {.program = name}));
  }
  return 0;
}
