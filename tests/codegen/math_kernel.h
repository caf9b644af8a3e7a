// The kernel out[i] = f(x[i], y[i]) of a mathematical function.
#pragma once

#include <functional>

#include "../kir/math_cases.h"
#include "kernel_harness.h"
#include "tenon/kir/expand_math.h"

namespace tenon::codegen::test {

// `body` gives the result for x and y.
using MathBody = std::function<kir::Val(kir::Builder&, kir::Val, kir::Val)>;

inline kir::Kernel math_kernel(std::string name, DType dtype, const MathBody& body) {
  kir::Kernel kernel;
  kernel.name = std::move(name);
  kir::Builder b(kernel);
  uint32_t x = b.add_buffer("x", dtype, false);
  uint32_t y = b.add_buffer("y", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](kir::Val i) { b.store(out, i, body(b, b.load(x, i), b.load(y, i))); });
  kir::expand_math(kernel);
  return kernel;
}

inline kir::Kernel math_kernel(kir::Op op, DType dtype) {
  bool two = kir::test::has_two_arguments(op);
  return math_kernel(std::string(name(op)), dtype, [=](kir::Builder& b, kir::Val x, kir::Val y) {
    return two ? b.binary(op, x, y) : b.unary(op, x);
  });
}

// Generated code of a mathematical function.
class MathCode {
 public:
  MathCode(kir::Op op, DType dtype, Isa isa) : MathCode(math_kernel(op, dtype), isa) {}
  MathCode(kir::Kernel kernel, Isa isa) : kernel_(std::move(kernel)), image_(compiled(isa), isa) {}

  template <class F>
  void run(const std::vector<F>& a, const std::vector<F>& b, std::vector<F>& out) const {
    void* buffers[] = {const_cast<F*>(a.data()), const_cast<F*>(b.data()), out.data()};
    int64_t status = 0;
    abi::KernelArgs args{buffers, nullptr, nullptr, &status, nullptr};
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
