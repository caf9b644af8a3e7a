// Runs a program that save_artifact.cpp has saved. This program links no compiler.
#include <tenon/runtime.h>

#include <iostream>
#include <vector>

namespace tn = tenon;

struct Params {
  tn::Array w, b;
};
TENON_STRUCT(Params, w, b)

tn::Array filled(std::vector<int64_t> dims, float value) {
  const std::vector<float> values(static_cast<size_t>(tn::element_count(dims)), value);
  return tn::array(std::move(dims), values);
}

int main(int argc, char** argv) {
  auto step = tn::load(argc > 1 ? argv[1] : "step.tenon");
  std::cout << step << "\n";
  const Params params{.w = filled({64, 32}, 1), .b = filled({32}, 0.5)};
  for (int64_t batch : {1, 5}) {
    tn::Array y = step(filled({batch, 64}, 1), params, 2.0f);
    const std::vector<float> values = tn::to_vector<float>(y);
    std::cout << y.describe() << " of " << values[0] << "\n";
    if (y.dims() != std::vector<int64_t>{batch, 32} || values[0] != 128.5f) return 1;
  }
  try {
    step(filled({1, 64}, 1), params, 3.0f);
  } catch (const tn::ValueError& error) {
    std::cout << error.what() << "\n";
    return 0;
  }
  return 1;
}
