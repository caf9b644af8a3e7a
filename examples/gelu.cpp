// The first program: an ordinary function becomes one fused kernel.
#include <tenon/tenon.h>

#include <cmath>
#include <iostream>

namespace tn = tenon;

tn::Tensor gelu(const tn::Tensor& x) { return x * (1.0f + tn::erf(x * float(M_SQRT1_2))) * 0.5f; }

int main() {
  auto fast = tn::compile(gelu);
  tn::Tensor y = fast(tn::random::normal({32, 1000, 16}));
  std::cout << fast.explain();
  std::cout << tn::mean(y) << "\n";
  return y.size() == 32 * 1000 * 16 ? 0 : 1;
}
