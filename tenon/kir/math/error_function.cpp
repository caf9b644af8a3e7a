#include <limits>

#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

// erfc(t) exp(t^2) for t >= 0.
Value scaled_erfc(Value t) {
  double k = t.is_f64() ? 4 : 3;
  Value w = 1.0 / (t + k);
  Value u = (t - k) * w;
  Value p =
      polynomial(u,
                 {0x1.12f21ep0, -0x1.c44c48p-1, 0x1.2e325ep-1, -0x1.3dead2p-2, 0x1.e99a24p-4,
                  -0x1.b7bb34p-6, -0x1.441198p-10, 0x1.931e0ep-9, -0x1.edc7dap-12, -0x1.4ba62cp-12},
                 {0x1.18932bf08e154p0,    -0x1.f3fe31ecb49bep-1,  0x1.8be202d26c748p-1,
                  -0x1.14eacb1ad03b8p-1,  0x1.52cac2370edb6p-2,   -0x1.645fd8a4b84f6p-3,
                  0x1.38dbd2c93932fp-4,   -0x1.b00c052de0434p-6,  0x1.908f46ed3de6dp-8,
                  -0x1.269b4ef287075p-12, -0x1.dd282f2d2c9b3p-12, 0x1.72cd8b6d9b862p-13,
                  -0x1.e8185c77e6dbcp-19, -0x1.3c6c909bc8b8ep-16, 0x1.3b4eaa8adfd3fp-18,
                  0x1.7e222de082ffcp-20,  -0x1.ca6926b5c2904p-21, -0x1.457e173f616dap-24,
                  0x1.1ec595301a088p-23,  0x1.6d0a58df9749ep-29,  -0x1.7d2ff72718127p-26,
                  -0x1.1253e186a0a0fp-29, 0x1.ae7afa7df4205p-29,  0x1.ecdd4f726bf5dp-31});
  return p * w;
}

// exp(t*t/2) (1 - Phi(t)) for t >= 0.
Value scaled_normal_tail(Value t) {
  if (t.is_f64()) return scaled_erfc(t * 0x1.6a09e667f3bcdp-1) * 0.5;
  Value w = 1.0 / (t + 4.0);
  Value u = (t - 4.0) * w;
  return w * polynomial(u, {0x1.82b4bcp-1, -0x1.373e3ap-1, 0x1.8c6d8cp-2, -0x1.7dffaep-3,
                            0x1.eed91ap-5, -0x1.ed553ep-8, -0x1.cd973p-9, 0x1.9bb068p-10,
                            0x1.91808cp-13, -0x1.0743ep-13});
}

// factor * exp(-t*t * scale): the square is taken with its rounding error. `scale` is 1 or 1/2.
Value times_gaussian(Value t, double scale, Value factor) {
  Value square = t * t;
  Value lost = fma(t, t, -square);
  return exp_of_sum(square * -scale, lost * -scale, factor);
}

// erfc(|x|), with |x| brought below where the result is 0.
Value erfc_of_magnitude(Value x) {
  Value t = at_most(abs(x), x.is_f64() ? 27.3 : 10.2);
  return times_gaussian(t, 1, scaled_erfc(t));
}

// erf(x) for |x| <= 1.
Value erf_near(Value x) {
  Value z = x * x;
  Value p = polynomial(
      z,
      {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2d1cp-4, -0x1.b7fdbep-6, 0x1.54385cp-8, -0x1.a5b3acp-11,
       0x1.4ec5b6p-14},
      {0x1.06eba8214db69p-3, -0x1.812746b0379fep-2, 0x1.ce2f21a043774p-4, -0x1.b82ce312b4df4p-6,
       0x1.565bcd147ee02p-8, -0x1.c02db510df3dcp-11, 0x1.f9a3470f8f1cep-14, -0x1.f4d4f9a63f6cap-17,
       0x1.ba0d087fa4662p-20, -0x1.60fae85b65939p-23, 0x1.0909d1b7d48f6p-26, -0x1.b25a11b131f71p-30,
       0x1.cca1b171e7831p-33, -0x1.8d0d35e325edep-36});
  return muladd(x, p, x);
}

// erfinv(y) for y > 0 within 2e-3 (Winitzki, "A handy approximation for the error function and its
// inverse", 2008).
Value erfinv_guess(Value y) {
  constexpr double kA = 0.147;
  Value l = log1p(-(y * y));
  Value t = muladd(l, 0.5, 2 / (3.14159265358979 * kA));
  Value u = l * (-1 / kA);
  return sqrt(u / (sqrt(muladd(t, t, u)) + t));
}

}  // namespace

Value erf(Value x) {
  Value far = copysign(1.0 - erfc_of_magnitude(x), x);
  return select(abs(x) < 1.0, erf_near(x), far);
}

Value erfc(Value x) {
  Value tail = erfc_of_magnitude(x);
  return select(x < 0.0, 2.0 - tail, tail);
}

Value erfinv(Value x) {
  Value y = abs(x);
  Value central = y < 0.75;
  Value r = erfinv_guess(y);
  // Halley's method on erf in the centre and on erfc, where it keeps its precision, outside.
  for (int round = 0; round < (x.is_f64() ? 2 : 1); ++round) {
    Value error = select(central, erf_near(r) - y, (1.0 - y) - erfc_of_magnitude(r));
    Value step = error * 0x1.c5bf891b4ef6bp-1 * exp(r * r);
    r = r - step / muladd(r, step, 1.0);
  }
  Value tiny = y < (x.is_f64() ? 0x1p-27 : 0x1p-13);
  r = select(tiny, y * 0x1.c5bf891b4ef6bp-1, r);
  r = select(equal(y, 1.0), std::numeric_limits<double>::infinity(), r);
  return copysign(r, x);
}

Value gelu(Value x) {
  double limit = x.is_f64() ? 39 : 14.5;
  Value bounded = at_most(at_least(x, -limit), limit);
  Value t = abs(bounded);
  // x (1 - Phi(|x|)); the factors stand before the scaling, which may round to a subnormal.
  Value tail = times_gaussian(t, 0.5, bounded * scaled_normal_tail(t));
  return select(x > 0.0, x - tail, tail);
}

}  // namespace tenon::kir::math
