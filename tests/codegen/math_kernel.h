// The kernel out[i] = f(x[i], y[i]) of a mathematical function.
#pragma once

#include "../kir/math_cases.h"
#include "kernel_harness.h"
#include "tenon/kir/expand_math.h"

namespace tenon::codegen::test {

inline kir::Kernel math_kernel(kir::Op op, DType dtype) {
  kir::Kernel kernel;
  kernel.name = std::string(name(op));
  kir::Builder b(kernel);
  uint32_t x = b.add_buffer("x", dtype, false);
  uint32_t y = b.add_buffer("y", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](kir::Val i) {
    kir::Val a = b.load(x, i);
    bool two = kir::test::has_two_arguments(op);
    b.store(out, i, two ? b.binary(op, a, b.load(y, i)) : b.unary(op, a));
  });
  kir::expand_math(kernel);
  return kernel;
}

// Generated code of a mathematical function.
class MathCode {
 public:
  MathCode(kir::Op op, DType dtype, Isa isa)
      : kernel_(math_kernel(op, dtype)), image_(compiled(isa), isa) {}

  template <class F>
  void run(const std::vector<F>& a, const std::vector<F>& b, std::vector<F>& out) const {
    void* buffers[] = {const_cast<F*>(a.data()), const_cast<F*>(b.data()), out.data()};
    int64_t status = 0;
    abi::KernelArgs args{buffers, nullptr, nullptr, &status, &runtime_table()};
    image_.entry(0)(&args, 0, static_cast<int64_t>(a.size()));
  }

 private:
  Image compiled(Isa isa) {
    const kir::Kernel* kernels[] = {&kernel_};
    return compile(kernels, {.isa = isa});
  }
  kir::Kernel kernel_;
  LoadedImage image_;
};

}  // namespace tenon::codegen::test
