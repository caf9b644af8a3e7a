#include <cmath>
#include <limits>

#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Value widen(Value a) { return convert(Op::kFExt, Type::kF64, a); }

// a^(-1/3) within about a tenth of its error: minus a third of the bits.
Value cube_root_guess(Value a) {
  int drop = a.is_f64() ? 32 : 9;
  Value high = number_of(lshr(to_bits(a), drop), a);
  double one = std::ldexp(bias(a), fraction_bits(a) - drop);
  Value guess =
      muladd(high, -1.0 / 3, std::ldexp(1.5, fraction_bits(a)) + one * (4.0 / 3 - 0.0003));
  return abs(from_bits(shl(to_bits(guess), drop)));
}

// |x|^y in f64, so that the exponent's error is far below the result's last place.
Value magnitude_f32(Value x, Value y) {
  Value magnitude = abs(widen(x));
  Value r = exp2(widen(y) * coarse_log2(magnitude));
  return convert(Op::kFTrunc, Type::kF32, select(equal(magnitude, 1.0), 1.0, r));
}

Value magnitude_f64(Value x, Value y) {
  Value magnitude = abs(x);
  Twofold log = log_twofold(magnitude);
  // A tiny exponent gives 1 as this one does, and no subnormal product.
  Value exponent = copysign(larger_magnitude(abs(y), y.make(0x1p-70)), y);
  Twofold p = exact_product(exponent, log.high);
  Value r = exp_twofold(p.high, muladd(exponent, log.low, p.low));
  r = select(equal(magnitude, 1.0), 1.0, r);
  Value is_zero = equal(magnitude, 0.0), rises = y > 0.0;
  Value extreme = select(bit_xor(is_zero, rises), kInf, r.make(0.0));
  return select(either(is_zero, equal(magnitude, kInf)), extreme, r);
}

}  // namespace

Value cbrt(Value x) {
  Value a = abs(x);
  Value small = a < (x.is_f64() ? 0x1p-900 : 0x1p-90);
  Value one = x.make(1.0);
  double up = x.is_f64() ? 0x1p108 : 0x1p48;
  Value scaled = normal_part(a) * select(small, up, one);
  Value subnormal = below_normal(a);
  scaled =
      rarely(subnormal, scaled, [&] { return units_of(x) * x.pick(0x1p-149 * 0x1p48, 0x1p-966); });
  Value r = cube_root_guess(scaled);
  for (int round = 0; round < (x.is_f64() ? 3 : 2); ++round) {
    Value e = 1.0 - scaled * r * r * r;
    r = muladd(r * e, polynomial(e, {1.0 / 3, 2.0 / 9, 14.0 / 81}), r);
  }
  Value y = scaled * r * r;
  // One step of Newton's method, on quarters: y*y*y may be above the largest number.
  Value quarter = scaled * 0.25 - y * y * (y * 0.25);
  y = muladd(quarter * (r * r), 4.0 / 3, y);
  y = copysign(y * select(small, x.is_f64() ? 0x1p-36 : 0x1p-16, one), x);
  Value regular = both(a > 0.0, a < kInf);
  return select(regular, y, x + x);
}

Value pow(Value x, Value y) {
  Value r = x.is_f64() ? magnitude_f64(x, y) : magnitude_f32(x, y);
  Value whole = equal(unary(Op::kTrunc, y), y);
  Value half = larger_magnitude(abs(y), y.make(0.5)) * 0.5;
  Value even = equal(unary(Op::kTrunc, half), half);
  Value odd = {y.b, y.b->binary(Op::kAnd, whole.v, y.b->logical_not(even.v))};
  Value negative = cmp(Pred::kSLt, to_bits(x), to_bits(x.make(0.0)));
  r = select(both(odd, negative), -r, r);
  Value undefined = both(both(x<0.0, x> - kInf), Value{y.b, y.b->logical_not(whole.v)});
  r = select(undefined, std::numeric_limits<double>::quiet_NaN(), r);
  r = select(cmp(Pred::kUno, x, y), x + y, r);
  return select(either(equal(x, 1.0), equal(y, 0.0)), 1.0, r);
}

Value hypot(Value x, Value y) {
  Value ax = abs(x), ay = abs(y);
  Value big = binary(Op::kFMaxFast, ax, ay), small = binary(Op::kFMinFast, ax, ay);
  // Tiny numbers are scaled. A smaller one that is subnormal and is not becomes negative, and then
  // what does not matter below.
  int power = x.is_f64() ? 200 : 60;
  Value tiny = big < x.pick(0x1p-60, 0x1p-800);
  Builder& b = *x.b;
  Val init[] = {big.v, small.v};
  auto scaled = b.rarely(tiny.v, init, [&](std::span<const Val> now) {
    return std::vector<Val>{raised_where(tiny, {&b, now[0]}, power).v,
                            raised_where(tiny, {&b, now[1]}, power).v};
  });
  big = {&b, scaled[0]};
  // A number that is far below the other one does not matter.
  small = binary(Op::kFMaxFast, Value{&b, scaled[1]}, big * x.pick(0x1p-30, 0x1p-60));
  Value t = small / select(equal(big, 0.0), 1.0, big);
  Value r = big * sqrt(muladd(t, t, 1.0));
  Val root[] = {r.v};
  r = {&b, b.rarely(tiny.v, root, [&](std::span<const Val> now) {
         return std::vector<Val>{lowered_where(tiny, {&b, now[0]}, power, true).v};
       })[0]};
  r = select(cmp(Pred::kUno, x, y), std::numeric_limits<double>::quiet_NaN(), r);
  return select(either(equal(ax, kInf), equal(ay, kInf)), kInf, r);
}

}  // namespace tenon::kir::math
