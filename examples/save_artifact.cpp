// Saves a program as one file: no weights, no call, no data. load_artifact.cpp runs it.
#include <tenon/tenon.h>

#include <iostream>

namespace tn = tenon;

struct Params {
  tn::Tensor w, b;
};
TENON_STRUCT(Params, w, b)

tn::Tensor step(const tn::Tensor& x, const Params& p, float gain) {
  return tn::matmul(x, p.w) * gain + p.b;
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "step.tenon";
  auto program = tn::compile(step, {.name = "step", .argument_names = {"x", "p", "gain"}})(
      tn::TensorLayout(tn::f32, {"batch", 64}),
      Params{.w = tn::TensorLayout(tn::f32, {64, 32}), .b = tn::TensorLayout(tn::f32, {32})}, 2.0f);
  program.save(path);
  std::cout << program << "\nsaved as " << path << "\n";
}
