#include "tenon/kir/reference_math.h"

#include <cmath>
#include <limits>

#include "tenon/base/error.h"

namespace tenon::kir {

namespace {

template <class W>
constexpr W kInvSqrt2 = static_cast<W>(0.7071067811865475244008443621048490393L);
// 1/sqrt(2) minus kInvSqrt2; nothing to speak of in wider types than these.
template <class W>
constexpr W kInvSqrt2Low = std::numeric_limits<W>::digits == 53   ? -0x1.bdd3413b26456p-55
                           : std::numeric_limits<W>::digits == 64 ? 0xb.2fb1366ea95p-69
                                                                  : 0.0;
template <class W>
constexpr W kHalfSqrtPi = static_cast<W>(0.8862269254527580136490837416705725914L);

// Newton's method on erf (erfc near ±1) from the central or the tail approximation of first order.
template <class W>
W erf_inverse(W y) {
  if (!(std::fabs(y) <= 1)) return std::numeric_limits<W>::quiet_NaN();
  if (std::fabs(y) == 1) return y * std::numeric_limits<W>::infinity();
  if (std::fabs(y) < static_cast<W>(1e-8)) return y * kHalfSqrtPi<W>;
  W q = 1 - std::fabs(y);
  W w = std::log(2 / q);
  W x = std::fabs(y) < static_cast<W>(0.5) ? std::fabs(y) * kHalfSqrtPi<W>
                                           : std::sqrt(w - std::log(w + 1) / 2);
  for (int k = 0; k < 60; ++k) {
    W error = std::fabs(y) < static_cast<W>(0.5) ? std::erf(x) - std::fabs(y) : q - std::erfc(x);
    W step = error * kHalfSqrtPi<W> * std::exp(x * x);
    W next = x - step / (1 + x * step);
    bool close = std::fabs(next - x) <= static_cast<W>(1e-7) * x;  // each step cubes the error
    x = next;
    if (close) break;
  }
  return std::copysign(x, y);
}

// erfc's argument is taken with its rounding error, which the tail magnifies.
template <class W>
W gelu(W x) {
  constexpr W kInf = std::numeric_limits<W>::infinity();
  if (x == -kInf) return -static_cast<W>(0);
  if (x == kInf) return x;
  W y = -x * kInvSqrt2<W>;
  W lost = std::fma(-x, kInvSqrt2<W>, -y) - x * kInvSqrt2Low<W>;
  W tail = std::erfc(y) - std::exp(-y * y) / kHalfSqrtPi<W> * lost;
  return x * (tail / 2);
}

// Over two exponentials, so that neither overflow nor cancellation occurs.
template <class W>
W sigmoid(W x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  W e = std::exp(x);
  return e / (1 + e);
}

template <class W>
W evaluate(Op op, W a, W b) {
  switch (op) {
    case Op::kExp: return std::exp(a);
    case Op::kExp2: return std::exp2(a);
    case Op::kExpm1: return std::expm1(a);
    case Op::kLog: return std::log(a);
    case Op::kLog2: return std::log2(a);
    case Op::kLog10: return std::log10(a);
    case Op::kLog1p: return std::log1p(a);
    case Op::kSin: return std::sin(a);
    case Op::kCos: return std::cos(a);
    case Op::kTan: return std::tan(a);
    case Op::kAsin: return std::asin(a);
    case Op::kAcos: return std::acos(a);
    case Op::kAtan: return std::atan(a);
    case Op::kSinh: return std::sinh(a);
    case Op::kCosh: return std::cosh(a);
    case Op::kTanh: return std::tanh(a);
    case Op::kAsinh: return std::asinh(a);
    case Op::kAcosh: return std::acosh(a);
    case Op::kAtanh: return std::atanh(a);
    case Op::kErf: return std::erf(a);
    case Op::kErfc: return std::erfc(a);
    case Op::kErfinv: return erf_inverse(a);
    case Op::kCbrt: return std::cbrt(a);
    case Op::kSigmoid: return sigmoid(a);
    case Op::kGelu: return gelu(a);
    case Op::kPow: return std::pow(a, b);
    case Op::kAtan2: return std::atan2(a, b);
    case Op::kFmod: return std::fmod(a, b);
    case Op::kHypot: return std::hypot(a, b);
    default: throw InternalError(fmt::format("{}: not a mathematical function", name(op)));
  }
}

}  // namespace

double wide_reference_math(Op op, double a, double b) { return evaluate(op, a, b); }
long double wide_reference_math(Op op, long double a, long double b) { return evaluate(op, a, b); }

float reference_math(Op op, float a, float b) {
  return static_cast<float>(evaluate<double>(op, a, b));
}
double reference_math(Op op, double a, double b) {
  return static_cast<double>(evaluate<long double>(op, a, b));
}

}  // namespace tenon::kir
