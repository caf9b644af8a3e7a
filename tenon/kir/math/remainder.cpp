#include <cmath>
#include <limits>

#include "tenon/kir/math/functions.h"

namespace tenon::kir::math {

namespace {

// Bits of a quotient that one step finds: products of so many bits with each half of a significand
// are exact.
int step_bits(Value like) { return like.is_f64() ? 26 : 12; }

// a - q * b for whole q = a / b below 2^step_bits, which may be one too large; exact, without fused
// multiply-add. `a` is a multiple of the last place of b times the largest power of two in q.
Value rest_of(Value a, Value b, Value q) {
  Value high = from_bits(bit_and(to_bits(b), -(int64_t{1} << step_bits(b))));
  Value r = (a - q * high) - q * (b - high);
  return r + select(r < 0.0, b, b.make(0.0));
}

Value truncated(Value a) { return unary(Op::kTrunc, a); }

// v = significand * 2^(exponent - bias - fraction_bits) for v > 0, with the significand a whole
// number from 2^fraction_bits on.
struct Whole {
  Value significand;
  Value exponent;
};

Whole whole(Value v) {
  constexpr int kRaise = 64;
  Value small = below_normal(v);
  Value bits = to_bits(select(small, raised(v, kRaise), v));
  int fraction = fraction_bits(v);
  Value one = to_bits(v.make(std::ldexp(1.0, fraction)));
  Value field = bit_and(bits, (int64_t{1} << fraction) - 1);
  Value raise = select(small, bits.make_int(kRaise), bits.make_int(0));
  return {from_bits(binary(Op::kOr, field, one)), lshr(bits, fraction) - raise};
}

// As many rounds as the lane with the most bits left needs, up to the next power of two.
Val rounds_for(Value left, int bits_a_round) {
  Builder& b = *left.b;
  auto more_than = [&](int64_t bits) {
    Val some = b.any(cmp(Pred::kSGt, left, left.make_int(bits)).v);
    return b.convert(Op::kZExt, Type::kI64, some);
  };
  int64_t most = left.type() == Type::kI64 ? 2 * 1074 : 2 * 149;
  Val rounds = more_than(0);
  for (int64_t n = 1; n * bits_a_round < most; n *= 2)
    rounds = b.add(rounds, b.mul(more_than(n * bits_a_round), b.i64(n)));
  return rounds;
}

// Long division in steps: the remainder of a / b for any a, b > 0.
Value long_remainder(Value a, Value b) {
  Whole x = whole(a), y = whole(b);
  Value m = y.significand;
  Value left = x.exponent - y.exponent;
  Value first = x.significand - select(x.significand < m, a.make(0.0), m);
  Builder& builder = *a.b;
  CarriedSpec carried[] = {{first.v}, {left.v}};
  auto step = [&](Val, std::span<const Val> now) {
    Value r = {&builder, now[0]}, n = {&builder, now[1]};
    Value bits = binary(Op::kSMin, n, n.make_int(step_bits(a)));
    bits = binary(Op::kSMax, bits, n.make_int(0));
    Value shifted = r * from_bits(shl(add_int(bits, bias(a)), fraction_bits(a)));
    r = rest_of(shifted, m, truncated(shifted / m));
    return std::vector<Val>{r.v, (n - bits).v};
  };
  auto results =
      builder.loop(builder.i64(0), rounds_for(left, step_bits(a)), {.rare = true}, carried, step);
  Value r = {&builder, results[0]};
  // r * 2^(exponent - bias - fraction_bits), which may be subnormal.
  int up = a.is_f64() ? 500 : 100;
  Value low = cmp(Pred::kSLt, y.exponent, y.exponent.make_int(up));
  Value zero = y.exponent.make_int(0);
  Value exponent = y.exponent - select(low, zero, zero.make_int(up));
  Value scaled = r * from_bits(shl(add_int(exponent, up - fraction_bits(a)), fraction_bits(a)));
  Value value = select(low, lowered(scaled, up), scaled);
  return select(cmp(Pred::kSLt, left, zero), a, value);
}

}  // namespace

Value fmod(Value x, Value y) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Value dividend = abs(x), by = abs(y);
  Value least = x.pick(0x1p-90, 0x1p-900), most = x.pick(0x1p100, 0x1p1000);
  // Where both are small, both are scaled, and so is the remainder. A small divisor of a larger
  // number is unusual.
  const int power = x.is_f64() ? 200 : 64;
  Builder& builder = *x.b;
  Value small = by < least;
  Val init[] = {dividend.v, by.v};
  auto scaled = builder.rarely(small.v, init, [&](std::span<const Val> now) {
    Value both_small = both(small, dividend < x.pick(0x1p-60, 0x1p-800));
    return std::vector<Val>{builder.select(both_small.v, raised(dividend, power).v, now[0]),
                            raised_where(both_small, {&builder, now[1]}, power).v};
  });
  Value a = {&builder, scaled[0]}, b = {&builder, scaled[1]};
  Value moderate = both(b<most, b> least);
  Value divisor = select(moderate, b, 1.0);
  // A dividend far below the divisor would make the quotient subnormal.
  Value q = truncated(binary(Op::kFMaxFast, divisor * 0x1p-20, a) / divisor);
  Value rest = rest_of(a, divisor, q);
  Val of_scaled[] = {rest.v};
  Value usual = {&builder, builder.rarely(small.v, of_scaled, [&](std::span<const Val> now) {
                   return std::vector<Val>{lowered_where(small, {&builder, now[0]}, power).v};
                 })[0]};
  Value plain = both(moderate, q < std::ldexp(1.0, step_bits(x)));
  Value unusual = {x.b, x.b->logical_not(plain.v)};
  Value r = rarely(unusual, usual, [&] {
    Value defined = both(dividend<kInf, by> 0.0);
    Value one = x.make(1.0);
    Value r = long_remainder(select(defined, dividend, one), select(defined, by, one));
    Value other = select(equal(by, kInf), dividend, r);
    return select(defined, other, std::numeric_limits<double>::quiet_NaN());
  });
  return copysign(r, x);
}

}  // namespace tenon::kir::math
