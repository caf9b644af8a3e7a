// Writable arguments: the program updates the caller's memory.
#include <tenon/tenon.h>

#include <iostream>

namespace tn = tenon;

int main() {
  auto append = tn::compile([](tn::Tensor cache, const tn::Tensor& row, const tn::Tensor& at) {
    cache[at] = row;
    return cache.sum();
  })(tn::BufferLayout(tn::f32, {4, 2}), tn::TensorLayout(tn::f32, {2}),
     tn::TensorLayout(tn::i64, {}));
  tn::Tensor cache = tn::zeros({4, 2});
  for (int64_t i = 0; i < 3; ++i) append(cache, tn::full({2}, i + 1.0f), tn::tensor(i));
  std::cout << cache << "\n";
  return cache.to_vector<float>() == std::vector<float>{1, 1, 2, 2, 3, 3, 0, 0} ? 0 : 1;
}
