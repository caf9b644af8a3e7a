#include <array>
#include <bit>
#include <limits>

#include "tenon/kir/math/erf_table.h"
#include "tenon/kir/math/functions.h"
#include "tenon/kir/math/gelu_table.h"

namespace tenon::kir::math {

namespace {

// Entry `index` (0 … 15) of a table.
Value entry(const std::array<float, 16>& row, Value index) {
  std::array<uint64_t, 16> bits;
  for (size_t k = 0; k < 16; ++k) bits[k] = std::bit_cast<uint32_t>(row[k]);
  return {index.b, index.b->table(Type::kF32, bits, index.v)};
}

// The polynomial in d whose coefficients are entry `index` of the tables.
template <size_t kCount>
Value tabled_polynomial(const std::array<std::array<float, 16>, kCount>& coefficients, Value index,
                        Value d) {
  Value sum = entry(coefficients.back(), index);
  for (size_t k = kCount - 1; k-- > 0;) sum = muladd(sum, d, entry(coefficients[k], index));
  return sum;
}

// The same in the distance of t (0 <= t < 3.875) from the nearest quarter.
template <size_t kCount>
Value quarters_polynomial(const std::array<std::array<float, 16>, kCount>& coefficients, Value t) {
  Rounded quarters = round_scaled(t, 4);
  return tabled_polynomial(coefficients, bit_and(quarters.bits, 15),
                           muladd(quarters.number, -0.25, t));
}

// erfc(t + low) exp((t + low)^2) for t >= 0, from a polynomial in u = 1 - 2k / (t + k). What 1 / (t
// + k) lost by rounding is made good like `low`, through the derivative, 2 t erfc(t) exp(t^2) - 2 /
// sqrt(pi).
Twofold scaled_erfc(Value t, Value low) {
  double k = t.is_f64() ? 4 : 2;
  Value sum = t + k;
  Value w = 1.0 / sum;
  Value u = muladd(w, -2 * k, 1.0);
  Value first = u.pick(0x1.058672p0, 0x1.18932bf08e154p0);
  Value q =
      polynomial(u,
                 {-0x1.5fd388p-1, 0x1.1e2dc2p-2, -0x1.2a86c8p-5, -0x1.604f66p-6, 0x1.a83a7ep-8,
                  0x1.907c14p-9, -0x1.b1d832p-11, -0x1.31c56ep-11, 0x1.75c402p-15, 0x1.11a28p-14},
                 {-0x1.f3fe31ecb49bep-1,  0x1.8be202d26c748p-1,   -0x1.14eacb1ad03b8p-1,
                  0x1.52cac2370edb6p-2,   -0x1.645fd8a4b84f6p-3,  0x1.38dbd2c93932fp-4,
                  -0x1.b00c052de0434p-6,  0x1.908f46ed3de6dp-8,   -0x1.269b4ef287075p-12,
                  -0x1.dd282f2d2c9b3p-12, 0x1.72cd8b6d9b862p-13,  -0x1.e8185c77e6dbcp-19,
                  -0x1.3c6c909bc8b8ep-16, 0x1.3b4eaa8adfd3fp-18,  0x1.7e222de082ffcp-20,
                  -0x1.ca6926b5c2904p-21, -0x1.457e173f616dap-24, 0x1.1ec595301a088p-23,
                  0x1.6d0a58df9749ep-29,  -0x1.7d2ff72718127p-26, -0x1.1253e186a0a0fp-29,
                  0x1.ae7afa7df4205p-29,  0x1.ecdd4f726bf5dp-31});
  Value rest = u * q;
  Value p = first + rest;
  Value part = p - rest;
  Value p_low = (rest - (p - part)) + (first - part) + residual(u, q, -rest);
  Value missing = t - (sum - k) + low;
  Value lost = residual(-w, sum, t.make(1.0)) - w * missing;
  Value slope = muladd(t * -2.0, w * p, 0x1.20dd750429b6dp0);
  Value high = w * p;
  return {high, residual(w, p, -high) + muladd(w, p_low, lost * sum * slope)};
}

// exp(t*t/2) (1 - Phi(t)) for 0 <= t < 15, from tables: a division by t + k would cost 2 ulp.
Twofold tabled_normal_tail(Value t) {
  Value shifted = t + 1.0;
  Value interval = lshr(to_bits(shifted) - to_bits(t.make(1.0)), 21);
  interval = bit_and(interval, 15);  // NaN
  Value d = t - entry(kGeluMiddle, interval);
  Value middle = entry(kGeluCoefficients[0], interval);
  Value slope = entry(kGeluCoefficients.back(), interval);
  for (size_t k = kGeluCoefficients.size() - 1; k-- > 1;)
    slope = muladd(slope, d, entry(kGeluCoefficients[k], interval));
  Value rest = slope * d;
  return exact_sum(middle, rest);
}

// 1 - Phi(t) for 0 <= t < kNear, f32: without the exponential, since nearly all arguments of a
// network are there.
constexpr double kNear = 3.875;

Value near_normal_tail(Value t) { return quarters_polynomial(kGeluNear, t); }

// exp(t*t/2) (1 - Phi(t)).
Twofold scaled_normal_tail(Value t) {
  if (!t.is_f64()) return tabled_normal_tail(t);
  Value scale = t.make(0x1.6a09e667f3bcdp-1);
  Value argument = t * scale;
  Value low = muladd(t, -0x1.bdd3413b26456p-55, residual(t, scale, -argument));
  Twofold twice = scaled_erfc(argument, low);
  return {twice.high * 0.5, twice.low * 0.5};
}

// (factor + low) * exp(-t*t * scale), where that is not far below the least number: the square is
// taken with its rounding error. `scale` is 1 or 1/2.
Value times_gaussian(Value t, double scale, Value factor, Value low) {
  Value scaled = t * -scale;
  Value square = scaled * t;
  Value lost = residual(scaled, t, -square);
  return exp_of_sum(square, lost, factor, low);
}

// erfc(|x|), with |x| brought below where the result is 0.
Value erfc_of_magnitude(Value x) {
  Value t = at_most(abs(x), x.is_f64() ? 27.3 : 10.2);
  Twofold scaled = scaled_erfc(t, x.make(0.0));
  return times_gaussian(t, 1, scaled.high, scaled.low);
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
  Value a = abs(x);
  Value small = below_normal(a);
  Value t = select(small, 1.0, a);
  auto value = [&] {
    if (x.is_f64()) return select(t < 1.0, erf_near(t), 1.0 - erfc_of_magnitude(t));
    // From kOne on the nearest float is 1; the one before it is right from the bound on.
    constexpr double kOne = 0x1.f5a888p1;
    Value within = quarters_polynomial(kErfTable, at_most(t, 0x1.effffep1));
    return select(t > kOne, 1.0, within);
  };
  Value r = rarely(small, value(), [&] {
    constexpr double kSlopeLessOne = 0x1.06eba8214db69p-3;
    return from_bits(to_bits(a) + bits_of_units(units_of(a) * kSlopeLessOne));
  });
  return copysign(r, x);
}

Value erfc(Value x) {
  // In f32 the roundings of a dozen factors add up to 3 ulp.
  if (!x.is_f64()) {
    Value wide = erfc(convert(Op::kFExt, Type::kF64, x));
    return convert(Op::kFTrunc, Type::kF32, wide);
  }
  Value a = abs(x);
  Value tail = erfc_of_magnitude(at_least(a, 0.5));
  Value far = select(x < 0.0, 2.0 - tail, tail);
  // Up to here the result is above 1/4, which keeps the error of erf below 2 ulp.
  constexpr double kNearEnd = 0.8125;
  return select(a < kNearEnd, 1.0 - copysign(erf_near(at_least(a, 0x1p-60)), x), far);
}

Value erfinv(Value x) {
  Value magnitude = abs(x);
  Value small = below_normal(magnitude);
  Value tiny = magnitude < (x.is_f64() ? 0x1p-27 : 0x1p-13);
  Value y = select(tiny, 0.5, magnitude);
  Value central = y < 0.75;
  Value r = erfinv_guess(y);
  // Halley's method on erf in the centre and on erfc, where it keeps its precision, outside.
  for (int round = 0; round < (x.is_f64() ? 3 : 1); ++round) {
    Value error = select(central, erf_near(r) - y, (1.0 - y) - erfc_of_magnitude(r));
    Value step = error * 0x1.c5bf891b4ef6bp-1 * exp(r * r);
    r = r - step / muladd(r, step, 1.0);
  }
  Value slope = x.make(0x1.c5bf891b4ef6bp-1);
  r = select(tiny, normal_part(magnitude) * slope, r);
  r = rarely(small, r, [&] { return from_bits(bits_of_units(units_of(x) * slope)); });
  r = select(equal(y, 1.0), std::numeric_limits<double>::infinity(), r);
  return copysign(r, x);
}

namespace {

// x * Phi(x), from x (1 - Phi(|x|)).
Value gelu_from_tail(Value x, Value tail) { return select(x > 0.0, x - tail, tail); }

Value gelu_everywhere(Value x) {
  double limit = x.is_f64() ? 39 : 14.5;
  Value bounded = at_most(at_least(x, -limit), limit);
  Value t = at_least(abs(bounded), x.is_f64() ? 0x1p-60 : 0x1p-30);
  // x (1 - Phi(|x|)); the factors stand before the scaling, which may round to a subnormal.
  Twofold scaled = scaled_normal_tail(t);
  Value factor = bounded * scaled.high;
  Value low = muladd(bounded, scaled.low, residual(bounded, scaled.high, -factor));
  Value tail = times_gaussian(t, 0.5, factor, low);
  return gelu_from_tail(x, tail);
}

}  // namespace

Value gelu(Value x) {
  Value magnitude = abs(x);
  if (x.is_f64()) {
    Value small = below_normal(magnitude);
    return rarely(small, gelu_everywhere(select(small, 1.0, x)),
                  [&] { return copysign(from_bits(bits_of_units(units_of(x) * 0.5)), x); });
  }
  // Below `least` the value is x / 2, and what stands here for x keeps products normal.
  Value least = x.make(0x1p-100);
  Value t = binary(Op::kFMaxFast, least, magnitude);
  Value usual = muladd(-t, near_normal_tail(t), select(x > 0.0, t, x.make(0.0)));
  // One comparison finds what is small, far or NaN.
  Value bits = to_bits(magnitude), near = to_bits(x.make(kNear));
  Value unusual = cmp(Pred::kUGe, bits - to_bits(least), near - to_bits(least));
  return rarely(unusual, usual, [&] {
    constexpr int kRaise = 50;
    Value half = copysign(lowered(raised(magnitude, kRaise) * 0.5, kRaise), x);
    Value r = select(magnitude < least, half, usual);
    Value far = cmp(Pred::kUGe, bits, near);
    return rarely(far, r, [&] { return gelu_everywhere(select(far, x, 1.0)); });
  });
}

}  // namespace tenon::kir::math
