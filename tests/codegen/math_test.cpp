// Generated code of every mathematical function equals the reference evaluation of its expansion,
// bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernel_harness.h"
#include "tenon/kir/expand_math.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::Op;
using kir::Type;
using kir::Val;
using test::Call;

bool is_binary(Op op) {
  return op == Op::kPow || op == Op::kAtan2 || op == Op::kFmod || op == Op::kHypot;
}

std::vector<Op> math_ops() {
  std::vector<Op> ops;
  for (int k = 0; k <= static_cast<int>(Op::kIf); ++k) {
    if (kir::is_math(static_cast<Op>(k))) ops.push_back(static_cast<Op>(k));
  }
  return ops;
}

Kernel function_kernel(Op op, DType dtype) {
  Kernel kernel;
  kernel.name = fmt::format("{}_{}", name(op), name(dtype));
  Builder b(kernel);
  uint32_t x = b.add_buffer("x", dtype, false);
  uint32_t y = b.add_buffer("y", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val a = b.load(x, i);
    b.store(out, i, is_binary(op) ? b.binary(op, a, b.load(y, i)) : b.unary(op, a));
  });
  return kernel;
}

template <class T>
std::vector<std::byte> arguments(size_t count, uint64_t seed) {
  static constexpr double kCorners[] = {
      0.0,    -0.0, 1.0, -1.0,   INFINITY, -INFINITY,        NAN,  0.5, 1e-30, 1e-42, 88.8,
      -103.0, 1e30, 1e8, -745.2, 0x1p-149, 3.14159265358979, 1e300};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(count);
  for (size_t k = 0; k < count; ++k) {
    double scale = std::exp(normal(random) * (k % 3 == 0 ? 8 : 1));
    values[k] = static_cast<T>(k % 5 == 4 ? kCorners[random() % std::size(kCorners)]
                                          : normal(random) * scale);
  }
  return test::bytes_of(values);
}

template <class T>
void check_functions(DType dtype) {
  constexpr size_t kCount = 1003;
  for (Op op : math_ops()) {
    Kernel kernel = function_kernel(op, dtype);
    Kernel expanded = kernel.clone();
    kir::expand_math(expanded);
    Call call;
    call.end = kCount;
    call.buffers = {arguments<T>(kCount, 1), arguments<T>(kCount, 2),
                    std::vector<std::byte>(kCount * sizeof(T))};
    const Kernel* one = &kernel;
    for (Isa isa : test::runnable_isas()) {
      test::LoadedImage image(compile({&one, 1}, {.isa = isa}), isa);
      Call expected = test::run_reference(expanded, call, isa != Isa::kBaseline);
      Call got = test::run_image(image, 0, call);
      std::string what;
      EXPECT_TRUE(test::same_values(dtype, got.buffers[2], expected.buffers[2], &what))
          << kernel.name << " on " << name(isa) << ": " << what;
    }
  }
}

TEST(MathCode, SingleMatchesTheEvaluator) { check_functions<float>(DType::kF32); }
TEST(MathCode, DoubleMatchesTheEvaluator) { check_functions<double>(DType::kF64); }

}  // namespace
}  // namespace tenon::codegen
