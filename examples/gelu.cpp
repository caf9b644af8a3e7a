#include <tenon/tenon.h>

#include <cmath>
#include <iostream>

namespace tn = tenon;

tn::Tensor gelu(const tn::Tensor& x) {  // exact GELU: five operations
  return x * (1.0f + tn::erf(x * float(M_SQRT1_2))) * 0.5f;
}

int main() {
  auto fast = tn::compile(gelu);  // traced at the first call, cached by signature
  tn::Tensor y = fast(tn::random::normal({32, 1000, 16}));
  std::cout << fast.explain();  // one kernel, what it reads and writes, what it costs
}
