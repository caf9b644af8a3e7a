// Matrix products.
#include <array>

#include "harness.h"

namespace tenon::bench {
namespace {

Json matmul(const std::string& name, int64_t m, int64_t k, int64_t n) {
  // The right operand is a weight: packed once, when it is bound.
  const tn::Tensor w = normal({k, n}, 1);
  const tn::Tensor x = normal({m, k}, 2);
  tn::CompileOptions options;
  options.weights = {{"w", w}};
  auto fn = [k, n](const tn::Tensor& a) {
    return tn::matmul(a, tn::constant_external("w", tn::TensorLayout(tn::f32, {k, n})));
  };
  auto fast = tn::compile(fn, options)(tn::TensorLayout(tn::f32, {m, k}));
  return steady(name, [&] { fast(x).array(); });
}

}  // namespace

void add_matmul_rows(Rows& rows) {
  for (auto [m, k, n] : {std::array<int64_t, 3>{2048, 2048, 2048},
                         {128, 576, 1536},
                         {8, 4096, 4096},
                         {1, 4096, 4096},
                         {64, 64, 64}}) {
    const std::string name = fmt::format("matmul_{}x{}x{}", m, k, n);
    add_row(rows, name, [=, m = m, k = k, n = n] { return matmul(name, m, k, n); });
  }
}

}  // namespace tenon::bench
