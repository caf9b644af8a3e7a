// Compile before any data exists: declarations first, tensors later.
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

int main() {
  auto staged = tn::stage(step, {.name = "step", .argument_names = {"x", "p", "gain"}})(
      tn::TensorLayout(tn::f32, {"batch", 64}),
      Params{.w = tn::TensorLayout(tn::f32, {64, 32}), .b = tn::TensorLayout(tn::f32, {32})}, 2.0f);
  std::cout << staged << staged.count("matmul") << " matrix product\n";

  auto program = staged.compile();
  const Params params{tn::ones({64, 32}), tn::zeros({32})};
  for (int64_t batch : {1, 5}) {
    tn::Tensor y = program(tn::ones({batch, 64}), params, 2.0f);
    std::cout << tn::max(y) << "\n";
    if (y.to_vector<float>()[0] != 128) return 1;
  }
  try {
    program(tn::ones({4, 64}), params, 3.0f);
  } catch (const tn::ValueError& error) {
    std::cout << error.what() << "\n";
    return 0;
  }
  return 1;
}
