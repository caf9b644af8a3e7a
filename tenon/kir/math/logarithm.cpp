#include <cmath>
#include <limits>

#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
struct Parts {
  Value k;       // a whole number, as a float
  Value biased;  // k + bias, as an integer
  Value f;
};

// 2^fraction_bits + bias: from it on the exponent's bits, read as a whole number above
// 2^fraction_bits, count k.
Value usual_origin(Value x) { return x.make(std::ldexp(1.0, fraction_bits(x)) + bias(x)); }

// Of positive normal x.
Parts split(Value x, Value origin) {
  Value sqrt_half = to_bits(x.make(0x1.6a09e667f3bcdp-1));
  Value one = to_bits(x.make(1.0));
  Value t = to_bits(x) + (one - sqrt_half);
  Value biased = lshr(t, fraction_bits(x));
  Value magic = to_bits(x.make(std::ldexp(1.0, fraction_bits(x))));
  Value k = from_bits(binary(Op::kOr, biased, magic)) - origin;
  Value m = from_bits(bit_and(t, (int64_t{1} << fraction_bits(x)) - 1) + sqrt_half);
  return {k, biased, m - 1.0};
}

// log(1 + f) - f.
Value log_correction(Value f) {
  if (f.is_f64()) {
    Value s = f / (f + 2.0);
    Value z = s * s;
    Value r = z * polynomial(z, {0x1.5555555555558p-1, 0x1.9999999995303p-2, 0x1.2492492df3035p-2,
                                 0x1.c71c62e0b72cbp-3, 0x1.7462b661a6654p-3, 0x1.39fe212aeaa1p-3,
                                 0x1.2b5b8533b55acp-3});
    Value half_square = f * f * 0.5;
    return s * (half_square + r) - half_square;
  }
  Value p =
      polynomial(f, {0x1.555554p-2, -0x1.fffff8p-3, 0x1.999d46p-3, -0x1.555c9p-3, 0x1.23d502p-3,
                     -0x1.fcbe8p-4, 0x1.de37bep-4, -0x1.d786ecp-4, 0x1.204a7ep-4});
  return f * f * muladd(f, p, -0.5);
}

// Zero, subnormal, negative, infinite or NaN: one comparison of the bits.
Value is_irregular(Value x) {
  Value least = to_bits(x.pick(0x1p-126, 0x1p-1022));
  Value infinity = to_bits(x.make(std::numeric_limits<double>::infinity()));
  return cmp(Pred::kUGe, to_bits(x) - least, infinity - least);
}

// The value at points where the logarithm of `x` is not an ordinary number, else `usual`.
Value with_poles(Value x, Value usual) {
  double inf = std::numeric_limits<double>::infinity();
  Value r = select(equal(x, 0.0), -inf, usual);
  r = select(x < 0.0, std::numeric_limits<double>::quiet_NaN(), r);
  return select(either(equal(x, inf), is_nan(x)), x, r);
}

// The parts of every x: a subnormal number is split in units of the least one, and where the
// logarithm is no ordinary number, k is the infinity or NaN that it is.
Parts split(Value x) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Value usual = usual_origin(x);
  Builder& b = *x.b;
  Val init[] = {x.v, usual.v};
  auto now = b.rarely(is_irregular(x).v, init, [&](std::span<const Val> from) {
    Value subnormal = below_normal(x);
    Value origin = select(subnormal, usual + (bias(x) + fraction_bits(x) - 1), {&b, from[1]});
    origin = select(equal(x, 0.0), kInf, select(equal(x, kInf), -kInf, origin));
    Value defined = cmp(Pred::kFGe, x, x.make(0.0));
    origin = select(defined, origin, std::numeric_limits<double>::quiet_NaN());
    return std::vector<Val>{select(subnormal, units_of(x), {&b, from[0]}).v, origin.v};
  });
  return split(Value{&b, now[0]}, {&b, now[1]});
}

Value natural(Value k, Value f, Value correction) {
  Value low = muladd(k, k.pick(0x1.7f7d1cp-20, 0x1.a39ef35793c76p-33), correction);
  return muladd(k, k.pick(0x1.62e4p-1, 0x1.62e42feep-1), f + low);
}

}  // namespace

Value log(Value x) {
  Parts parts = split(x);
  return natural(parts.k, parts.f, log_correction(parts.f));
}

Value log2(Value x) {
  Parts parts = split(x);
  Value f = parts.f;
  Value high = f.pick(0x1.714p0, 0x1.715476p0);
  Value low = f.pick(0x1.47652cp-12, 0x1.4ae0bf85ddf44p-26);
  Value t = muladd(f, low, log_correction(f) * 0x1.71547652b82fep0);
  return parts.k + muladd(f, high, t);
}

Value coarse_log2(Value x) {
  Parts parts = split(x, usual_origin(x));
  Value s = parts.f / (parts.f + 2.0);
  Value z = s * s;
  Value p = polynomial(
      z, {0x1.5555554ba532p-1, 0x1.9999eba52ed78p-2, 0x1.245c27a811e8ap-2, 0x1.ddd435206ab52p-3});
  Value natural = muladd(s * z, p, s + s);
  double inf = std::numeric_limits<double>::infinity();
  Value r = muladd(natural, 0x1.71547652b82fep0, parts.k);
  return select(equal(x, 0.0), -inf, select(equal(x, inf), x, r));
}

// 1 + f = (1 + s) / (1 - s) for s = f / (2 + f), whose logarithm is 2 s (1 + s^2/3 + s^4/5 + ...).
Twofold log_twofold(Value x) {
  Parts parts = split(x);
  Value f = parts.f, k = parts.k;
  Twofold d = exact_sum(f.make(2.0), f);
  Value w = 1.0 / d.high;
  Value s = f * w;
  Value s_low = (residual(-s, d.high, f) - s * d.low) * w;
  Twofold z = exact_product(s, s);
  z.low = muladd(s + s, s_low, z.low);
  Value tail =
      z.high *
      polynomial(z.high, {0x1.999999999999ap-2, 0x1.2492492492204p-2, 0x1.c71c71c7b4d6cp-3,
                          0x1.745d16c64c08bp-3, 0x1.3b13e9daa502bp-3, 0x1.1102c8f92811ap-3,
                          0x1.e5ff395cf3e62p-4, 0x1.5e1274fca36a9p-4, 0x1.0a8a8029381fp-2});
  Twofold c = exact_sum(f.make(0x1.5555555555555p-1), tail);
  c.low = c.low + 0x1.5555555555555p-55;
  Twofold zc = exact_product(z.high, c.high);
  zc.low = zc.low + muladd(z.high, c.low, z.low * c.high);
  Twofold u = exact_sum(f.make(2.0), zc.high);
  u.low = u.low + zc.low;
  Twofold l = exact_product(s, u.high);
  l.low = l.low + muladd(s, u.low, s_low * u.high);
  Twofold sum = exact_sum(k * 0x1.62e42feep-1, l.high);
  return exact_sum(sum.high, sum.low + muladd(k, 0x1.a39ef35793c76p-33, l.low));
}

Value log10(Value x) {
  Parts parts = split(x);
  Value f = parts.f, k = parts.k;
  Value high = f.pick(0x1.bc8p-2, 0x1.bcb7b1p-2);
  Value low = f.pick(0x1.bd8a94p-13, 0x1.49b9438ca9aaep-28);
  Value t = muladd(f, low, log_correction(f) * 0x1.bcb7b1526e50ep-2);
  t = muladd(k, k.pick(0x1.3509f8p-18, 0x1.f79fef311f12bp-34), t);
  return muladd(k, k.pick(0x1.344p-2, 0x1.34413508p-2), muladd(f, high, t));
}

namespace {

Value log1p_regular(Value x) {
  Value u = x + 1.0;
  Value lost = x - (u - 1.0);
  Parts parts = split(u, usual_origin(u));
  // 2^-k; where that is subnormal, what was lost is too small to matter.
  Value exponent = parts.biased.make_int(2 * bias(x)) - parts.biased;
  exponent = binary(Op::kSMax, exponent, exponent.make_int(0));
  Value scale = from_bits(shl(exponent, fraction_bits(x)));
  Value f = muladd(lost, scale, parts.f);
  Value usual = copysign(natural(parts.k, f, log_correction(f)), x);
  return rarely(is_irregular(u), usual, [&] { return with_poles(u, usual); });
}

Value asinh_regular(Value x) {
  Value a = abs(x);
  Value big = a > (x.is_f64() ? 0x1p60 : 0x1p30);
  Value square = a * a;
  Value excess = a + square / (sqrt(square + 1.0) + 1.0);
  Value r = log1p_regular(select(big, a, excess)) + select(big, kLn2, x.make(0.0));
  return copysign(r, x);
}

Value atanh_regular(Value x) {
  Value a = abs(x);
  return copysign(log1p_regular((a + a) / (1.0 - a)) * 0.5, x);
}

}  // namespace

Value log1p(Value x) { return near_identity(x, x.is_f64() ? 0x1p-60 : 0x1p-30, log1p_regular); }
Value asinh(Value x) { return near_identity(x, tiny_limit(x), asinh_regular); }
Value atanh(Value x) { return near_identity(x, tiny_limit(x), atanh_regular); }

Value acosh(Value x) {
  Value big = x > (x.is_f64() ? 0x1p60 : 0x1p30);
  Value t = x - 1.0;
  Value excess = t + sqrt(t * (t + 2.0));
  Value r = log1p_regular(select(big, x, excess)) + select(big, kLn2, x.make(0.0));
  return select(x < 1.0, std::numeric_limits<double>::quiet_NaN(), r);
}

}  // namespace tenon::kir::math
