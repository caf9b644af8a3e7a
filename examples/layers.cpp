// Shared bodies: one definition of a block, one call a layer, weights under each layer's prefix.
#include <tenon/tenon.h>

#include <iostream>

namespace tn = tenon;

tn::Tensor block(const tn::Tensor& x) {
  tn::Tensor w = tn::constant_external("w", tn::TensorLayout(tn::f32, {4, 4}), /*relative=*/true);
  return x + tn::gelu(tn::matmul(tn::layer_norm(x), w));
}

tn::Tensor net(const tn::Tensor& x) {
  tn::Tensor y = x;
  for (int i = 0; i < 3; ++i) {
    tn::Layer layer("layers." + std::to_string(i));
    y = tn::as_subgraph(block, {.name = "block", .prefix = tn::current_layer() + "."})(y);
  }
  return y;
}

int main() {
  auto program = tn::compile(net, {.name = "net"})(tn::TensorLayout(tn::f32, {"n", 4}));
  for (const auto& weight : program.weights()) std::cout << weight.name << "\n";
  tn::Weights weights;
  for (const auto& weight : program.weights()) weights[weight.name] = tn::eye(4);
  program.bind(weights);
  tn::Tensor y = program(tn::ones({2, 4}));
  std::cout << program << "\n" << y << "\n";
  return y.to_vector<float>() == std::vector<float>(8, 1.0f) ? 0 : 1;
}
