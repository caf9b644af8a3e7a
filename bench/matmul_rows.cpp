// Matrix products.
#include <array>
#include <cmath>
#include <fstream>

#include "harness.h"

namespace tenon::bench {
namespace {

using Sizes = std::array<int64_t, 3>;  // m, k, n

tn::Tensor operand(const tn::Shape& shape, uint64_t seed, tn::DType dtype) {
  const bool bytes = dtype == tn::i8;
  return tn::cast(normal(shape, seed) * (bytes ? 40.0f : 1.0f), dtype).eval();
}

// a[m, k] @ w[k, n]; products of bytes are in i32. The right operand is a weight: packed once, when
// it is bound.
std::function<void()> product(const Sizes& sizes, tn::DType dtype) {
  const auto [m, k, n] = sizes;
  const tn::TensorLayout layout(dtype, {k, n});
  const tn::Tensor x = operand({m, k}, 2, dtype);
  tn::CompileOptions options;
  options.weights = {{"w", operand({k, n}, 1, dtype)}};
  auto fn = [layout, dtype](const tn::Tensor& a) {
    const tn::Tensor w = tn::constant_external("w", layout);
    return dtype == tn::i8 ? tn::matmul(a, w, tn::i32) : tn::matmul(a, w);
  };
  auto fast = tn::compile(fn, options)(tn::TensorLayout(dtype, {m, k}));
  return [fast, x] { fast(x).array(); };
}

// The same of two arguments.
std::function<void()> free_product(const tn::Shape& left, const tn::Shape& right,
                                   tn::DType dtype = tn::f32) {
  const tn::Tensor x = operand(left, 2, dtype);
  const tn::Tensor y = operand(right, 1, dtype);
  auto fast =
      tn::compile([](const tn::Tensor& a, const tn::Tensor& b) { return tn::matmul(a, b); });
  return [fast, x, y] { fast(x, y).array(); };
}

// a[m, k] @ b[n, k].T of two arguments.
std::function<void()> transposed_product(const Sizes& sizes) {
  const auto [m, k, n] = sizes;
  const tn::Tensor x = normal({m, k}, 2);
  const tn::Tensor y = normal({n, k}, 1);
  auto fast = tn::compile(
      [](const tn::Tensor& a, const tn::Tensor& b) { return tn::matmul(a, tn::transpose(b)); });
  return [fast, x, y] { fast(x, y).array(); };
}

void add_product(Rows& rows, const Sizes& sizes, tn::DType dtype, const std::string& kind) {
  const std::string name = fmt::format("matmul_{}{}x{}x{}", kind, sizes[0], sizes[1], sizes[2]);
  add_row(rows, name, [=] { return steady(name, product(sizes, dtype)); });
}

// GFLOP/s over the shapes of random_shapes.txt, the geometric mean of the best and of the medians;
// the best of each shape are in the notes.
Json random_products() {
  std::ifstream file("bench/random_shapes.txt");
  double best = 0;
  double median = 0;
  int count = 0;
  std::string each;
  for (Sizes s; file >> s[0] >> s[1] >> s[2]; ++count) {
    const Json times = steady("", product(s, tn::f32));
    const double work = 2e-6 * static_cast<double>(s[0] * s[1] * s[2]);
    const double rate = work / times["min"].get<double>();
    each += fmt::format("{}{:.0f}", count > 0 ? " " : "", rate);
    best += std::log(rate);
    median += std::log(work / times["median"].get<double>());
  }
  if (count == 0) throw std::runtime_error("bench/random_shapes.txt is missing");
  return row("matmul_random", "GFLOP/s", {std::exp(best / count), std::exp(median / count)}, each);
}

}  // namespace

void add_matmul_rows(Rows& rows) {
  for (const Sizes& sizes : {Sizes{2048, 2048, 2048},
                             {128, 576, 1536},
                             {8, 4096, 4096},
                             {1, 4096, 4096},
                             {64, 64, 64},
                             {100, 4096, 5},
                             {16, 100000, 16}}) {
    add_product(rows, sizes, tn::f32, "");
  }
  const auto add = [&](const std::string& name,
                       const std::function<std::function<void()>()>& make) {
    add_row(rows, name, [=] { return steady(name, make()); });
  };
  add("matmul_free_15x1024x1024", [] { return free_product({15, 1024}, {1024, 1024}); });
  add("matmul_free_bf16_4x1024x1024", [] {
    return free_product({4, 1024}, {1024, 1024}, tn::bf16);
  });
  add("matmul_batched_64x128x64x128", [] { return free_product({64, 128, 64}, {64, 64, 128}); });
  add("matmul_transposed_100x4096x5", [] { return transposed_product({100, 4096, 5}); });
  add("matmul_transposed_1x4096x4096", [] { return transposed_product({1, 4096, 4096}); });
  add_row(rows, "matmul_random", random_products);
  add_product(rows, {2048, 2048, 2048}, tn::bf16, "bf16_");
  add_product(rows, {1, 4096, 4096}, tn::bf16, "bf16_");
  add_product(rows, {2048, 2048, 2048}, tn::i8, "s8_");
}

}  // namespace tenon::bench
