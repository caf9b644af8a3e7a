#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

constexpr double kLog2E = 0x1.71547652b82fep0;

// x + low - n * scale * ln 2, where n is a whole number of few enough bits that n times the high
// part of ln 2 is exact.
Value reduce(Value x, const Value* low, Value n, double scale) {
  Value r = muladd(n, n.pick(-0x1.62e4p-1 * scale, -0x1.62e42feep-1 * scale), x);
  Value rest = n.pick(-0x1.7f7d1cp-20 * scale, -0x1.a39ef35793c76p-33 * scale);
  return low == nullptr ? muladd(n, rest, r) : r + muladd(n, rest, *low);
}

// exp(r) - 1 for |r| <= ln 2.
Value expm1_wide(Value r) {
  Value q = polynomial(
      r,
      {0x1p-1, 0x1.55555ap-3, 0x1.555552p-5, 0x1.110c4ep-7, 0x1.6c174ep-10, 0x1.a5027ep-13,
       0x1.a266b4p-16},
      {0x1.fffffffffffffp-2, 0x1.555555555555dp-3, 0x1.5555555555acep-5, 0x1.111111110fe62p-7,
       0x1.6c16c16b04532p-10, 0x1.a01a01a3302b1p-13, 0x1.a01a040a72917p-16, 0x1.71de3746f71ddp-19,
       0x1.27e289c12cd3bp-22, 0x1.ae663f7a105b4p-26, 0x1.213312ce3179p-29, 0x1.61db4ffe9f4c1p-33});
  return muladd(r * r, q, r);
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2.
Value second_order(Value r) {
  return polynomial(
      r, {0x1p-1, 0x1.5554dep-3, 0x1.55556cp-5, 0x1.120ad8p-7, 0x1.6ca9bcp-10},
      {0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555552p-5, 0x1.111111111004fp-7,
       0x1.6c16c16c18932p-10, 0x1.a01a01ac1fd2bp-13, 0x1.a01a0197beccdp-16, 0x1.71de01a4d8ce7p-19,
       0x1.27e500d3ddc3cp-22, 0x1.af4edf04837bp-26, 0x1.1f33114cf4b9p-29});
}

// exp(r) and exp(r) - 1 for |r| <= ln(2) / 2.
Value exp_narrow(Value r) { return muladd(muladd(second_order(r), r, 1.0), r, 1.0); }
Value expm1_narrow(Value r) { return muladd(r * r, second_order(r), r); }

// exp(x) = (1 + excess) * s * s with s = 2^m: two factors reach every exponent, subnormals with one
// rounding.
struct Scaled {
  Value excess;
  Value s;
  // factor * exp(x)
  Value times(Value factor) const { return muladd(factor, excess, factor) * s * s; }
};

Scaled scaled_exp(Value x, const Value* low) {
  Rounded m = round_scaled(x, kLog2E / 2, bias(x));
  Value r = reduce(x, low, m.number, 2);
  return {expm1_wide(r), from_bits(shl(m.bits, fraction_bits(x)))};
}

// (exp(x) - 1) / 2^shift for x up to about (bias + shift) ln 2.
Value expm1_over(Value x, int shift) {
  Rounded n = round_scaled(x, kLog2E, bias(x) - shift);
  Value r = reduce(x, nullptr, n.number, 1);
  Value s = from_bits(shl(n.bits, fraction_bits(x)));
  return muladd(s, expm1_narrow(r), s - 1.0 / (1 << shift));
}

Value bounded(Value x, double low32, double high32, double low64, double high64) {
  Value above = at_least(x, x.is_f64() ? low64 : low32);
  return at_most(above, x.is_f64() ? high64 : high32);
}

// x itself near 0, where dividing a subnormal number would lose bits of it.
Value or_itself(Value x, Value result) { return select(abs(x) < 0x1p-70, x, result); }

}  // namespace

Value exp(Value x) {
  x = bounded(x, -104, 89, -746, 710);
  Value n = round_scaled(x, kLog2E).number;
  return scale(exp_narrow(reduce(x, nullptr, n, 1)), n);
}

Value exp_of_sum(Value hi, Value lo, Value factor) { return scaled_exp(hi, &lo).times(factor); }

Value exp2(Value x) {
  x = bounded(x, -151, 129, -1076, 1025);
  Rounded m = round_scaled(x, 0.5, bias(x));
  Value r = muladd(m.number, -2.0, x);
  Value q = polynomial(
      r,
      {0x1.62e43p-1, 0x1.ebfbf2p-3, 0x1.c6b06ap-5, 0x1.3b2146p-7, 0x1.5d916p-10, 0x1.47da9p-13,
       0x1.0039p-16},
      {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c587p-3, 0x1.c6b08d704a13ap-5, 0x1.3b2ab6fba5bep-7,
       0x1.5d87fe789d987p-10, 0x1.430912f6bd98ap-13, 0x1.ffcbfc68e86b6p-17, 0x1.62c0251ff14bdp-20,
       0x1.b5252f6c8575bp-24, 0x1.e4ca79885de9bp-28, 0x1.e8d4c7def69c6p-32, 0x1.c79f07513d9ffp-36,
       0x1.7fdbcfbb3d5d2p-40});
  Value s = from_bits(shl(m.bits, fraction_bits(x)));
  return muladd(r, q, 1.0) * s * s;
}

Value expm1(Value x) {
  Value half = expm1_over(bounded(x, -18, 89, -38, 710), 1);
  return or_itself(x, copysign(half + half, x));
}

Value sigmoid(Value x) {
  Value e = exp(-abs(x));
  return select(x < 0.0, e, 1.0) / (e + 1.0);
}

Value sinh(Value x) {
  Value quarter = expm1_over(at_most(abs(x), x.is_f64() ? 710.6 : 89.6), 2);
  Value half = quarter + quarter;
  Value bounded_half = at_most(half, 0x1p100);
  return or_itself(x, copysign(half + bounded_half / muladd(bounded_half, 2.0, 1.0), x));
}

Value cosh(Value x) {
  Scaled e = scaled_exp(at_most(abs(x), x.is_f64() ? 711 : 90), nullptr);
  Value half = e.times(x.make(0.5));
  return half + 0.25 / half;
}

Value tanh(Value x) {
  Value a = abs(x);
  Value half = expm1_over(at_most(a + a, x.is_f64() ? 40 : 20), 1);
  Value sum = half + 1.0;
  Value q = half / sum;
  // What the sum lost; 1 / sum is 1 - q. Where q is near 1 the quotient hardly notices.
  Value lost = select(half < 1.0, half - (sum - 1.0), x.make(0.0));
  return copysign(q - q * (1.0 - q) * lost, x);
}

}  // namespace tenon::kir::math
