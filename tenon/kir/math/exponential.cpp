#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

constexpr double kLog2E = 0x1.71547652b82fep0;

// x - n ln 2 in two parts, where n is a whole number of few enough bits that n times the high part
// of ln 2 is exact.
Value high_reduced(Value x, Value n) {
  return muladd(n, n.pick(-0x1.62e4p-1, -0x1.62e42feep-1), x);
}
Value low_reduced(Value n, Value low) {
  return muladd(n, n.pick(-0x1.7f7d1cp-20, -0x1.a39ef35793c76p-33), low);
}
Value reduce(Value x, Value n) { return low_reduced(n, high_reduced(x, n)); }

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

// x without changing exp(x) or exp2(x), but never subnormal.
Value not_subnormal(Value x) { return x + x.pick(0x1p-50, 0x1p-110); }

// From this power of two down, results may be subnormal.
Value deep_power(Value like) { return like.pick(-125, -1021); }

// a 2^n for a from 1/2 to 2, where products do not round to subnormal numbers.
Value scaled(Value a, Value n) {
  Value r = scale(a, binary(Op::kFMaxFast, deep_power(n), n));
  int up = a.is_f64() ? 500 : 100;
  return rarely(n < deep_power(n), r, [&] { return lowered(scale(a, n + up), up); });
}

// (exp(x) - 1) / 2^shift for x up to about (bias + shift) ln 2.
Value expm1_over(Value x, int shift) {
  Rounded n = round_scaled(x, kLog2E, bias(x) - shift);
  Value r = reduce(x, n.number);
  Value s = from_bits(shl(n.bits, fraction_bits(x)));
  return muladd(s, expm1_narrow(r), s - 1.0 / (1 << shift));
}

Value bounded(Value x, double low32, double high32, double low64, double high64) {
  Value above = at_least(x, x.is_f64() ? low64 : low32);
  return at_most(above, x.is_f64() ? high64 : high32);
}

}  // namespace

Value exp(Value x) {
  x = not_subnormal(bounded(x, -104, 89, -746, 710));
  Value n = round_scaled(x, kLog2E).number;
  return scaled(exp_narrow(reduce(x, n)), n);
}

Value exp_of_sum(Value hi, Value lo, Value factor, Value factor_low) {
  Rounded n = round_scaled(hi, kLog2E, bias(hi));
  Value high = high_reduced(hi, n.number), low = low_reduced(n.number, lo);
  Value r = high + low;
  Value excess = expm1_narrow(r);
  // What r and the factor lost.
  Value rest = muladd(factor, low - (r - high), factor_low);
  Value a = factor + muladd(factor, excess, muladd(rest, excess, rest));
  // Powers of two so far down that the product may be subnormal are reached in two steps.
  int up = hi.is_f64() ? 500 : 60;
  Value least = n.bits.make_int((hi.is_f64() ? 0x4338000000000000 : 0x4b400000) + bias(hi) - up);
  auto power = [&](Value bits) { return from_bits(shl(bits, fraction_bits(hi))); };
  Value result = a * power(binary(Op::kSMax, n.bits, least));
  return rarely(n.number < -up, result,
                [&] { return copysign(lowered(abs(a) * power(add_int(n.bits, up)), up), factor); });
}

Value exp_twofold(Value hi, Value lo) {
  Value x = bounded(hi, -104, 89, -746, 710);
  lo = select(equal(x, hi), lo, 0.0);
  Value n = round_scaled(x, kLog2E).number;
  Value high = high_reduced(x, n), low = low_reduced(n, lo);
  Value r = high + low;
  Value excess = expm1_narrow(r);
  Value rest = low - (r - high);
  return scaled((excess + muladd(rest, excess, rest)) + 1.0, n);
}

Value exp2(Value x) {
  x = not_subnormal(bounded(x, -151, 129, -1076, 1025));
  Value n = round_scaled(x, 1).number;
  Value r = x - n;
  Value q = polynomial(
      r,
      {0x1.62e43p-1, 0x1.ebfbdep-3, 0x1.c6af9ep-5, 0x1.3b2c58p-7, 0x1.5ef4bcp-10, 0x1.42795ep-13},
      {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c598p-3, 0x1.c6b08d704a1acp-5, 0x1.3b2ab6fba1ecfp-7,
       0x1.5d87fe78804b9p-10, 0x1.430913094194dp-13, 0x1.ffcbfd0139d14p-17, 0x1.62bfd4e386592p-20,
       0x1.b523dce8bd522p-24, 0x1.e60593e75a07bp-28, 0x1.eb59e7426d0e4p-32});
  return scaled(muladd(r, q, 1.0), n);
}

Value expm1(Value x) {
  return near_identity(x, x.is_f64() ? 0x1p-60 : 0x1p-30, [](Value from) {
    Value half = expm1_over(bounded(from, -18, 89, -38, 710), 1);
    return copysign(half + half, from);
  });
}

Value sigmoid(Value x) {
  Value e = exp(-abs(x));
  Value bounded_e = at_least(e, x.is_f64() ? 0x1p-84 : 0x1p-44);
  Value sum = bounded_e + 1.0;
  Value lost = bounded_e - (sum - 1.0);
  Value left = x < 0.0;
  Value q = select(left, bounded_e, 1.0) / sum;
  // What the sum lost, divided by the sum.
  Value rest = select(left, 1.0 - q, q) * lost;
  return select(x < (x.is_f64() ? -57.0 : -29.0), e, muladd(-q, rest, q));
}

Value sinh(Value x) {
  return near_identity(x, tiny_limit(x), [](Value from) {
    Value quarter = expm1_over(at_most(abs(from), from.is_f64() ? 710.6 : 89.6), 2);
    Value half = quarter + quarter;
    Value bounded_half = at_most(half, 0x1p100);
    return copysign(half + bounded_half / muladd(bounded_half, 2.0, 1.0), from);
  });
}

Value cosh(Value x) {
  x = at_most(at_least(abs(x), tiny_limit(x)), x.is_f64() ? 711 : 90);
  Value n = round_scaled(x, kLog2E).number;
  Value half = scale(exp_narrow(reduce(x, n)) * 0.5, n);
  return half + 0.25 / at_most(half, 0x1p100);
}

Value tanh(Value x) {
  return near_identity(x, tiny_limit(x), [](Value from) {
    Value a = abs(from);
    Value half = expm1_over(at_most(a + a, from.is_f64() ? 40 : 20), 1);
    Value sum = half + 1.0;
    Value q = half / sum;
    // What the sum lost; 1 / sum is 1 - q. Where q is near 1 the quotient hardly notices.
    Value lost = select(half < 1.0, half - (sum - 1.0), from.make(0.0));
    return copysign(q - q * (1.0 - q) * lost, from);
  });
}

}  // namespace tenon::kir::math
