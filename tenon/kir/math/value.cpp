#include "tenon/kir/math/value.h"

#include <cmath>

namespace tenon::kir::math {

Value polynomial(Value x, Coefficients c) {
  auto at = c.end();
  Value sum = x.make(*--at);
  while (at != c.begin()) sum = muladd(sum, x, *--at);
  return sum;
}

Rounded round_scaled(Value x, double scale, int offset) {
  double magic = std::ldexp(1.5, fraction_bits(x)) + offset;
  Value shifted = muladd(x, scale, magic);
  return {shifted - magic, to_bits(shifted)};
}

Value number_of(Value integer, Value like, double offset) {
  double magic = std::ldexp(1.0, fraction_bits(like));
  Value bits = to_bits(like.make(magic));
  return from_bits(binary(Op::kOr, integer, bits)) - (magic - offset);
}

Value near_identity(Value x, double limit, const std::function<Value(Value)>& f) {
  Value tiny = abs(x) < limit;
  return select(tiny, x, f(select(tiny, limit, x)));
}

Value normal_part(Value a) {
  Value bits = to_bits(a);
  Value more = bits.make_int(int64_t{4} << fraction_bits(a));
  return from_bits(bits + select(below_normal(a), more, bits.make_int(0)));
}

namespace {

// Masks cost less than a choice between two numbers.
Value exponent_where(Value cond, int64_t exponent, Value like) {
  Value bits = to_bits(like);
  return select(cond, bits.make_int(exponent << fraction_bits(like)), bits.make_int(0));
}

// The bits of a subnormal number with an exponent more are those of a number that is 2^(1 - bias +
// power) above it.
Value raised_by(Value a, int power, Value up, Value subnormal) {
  Value above = select(subnormal, std::ldexp(1.0, power + 1 - bias(a)), a.make(0.0));
  return from_bits(to_bits(a) + up + exponent_where(subnormal, 1, a)) - above;
}

Value lowered_by(Value a, int power, Value down, Value subnormal) {
  Value first = a.make(std::ldexp(1.0, power + 1 - bias(a)));
  Value bits = to_bits(a + select(subnormal, first, a.make(0.0)));
  return from_bits(bits - down - exponent_where(subnormal, 1, a));
}

Value exponent(Value like, int power) {
  return to_bits(like).make_int(int64_t{power} << fraction_bits(like));
}

Value lowered_below_normal(Value a, int power) { return a < std::ldexp(1.0, power + 1 - bias(a)); }

}  // namespace

Value raised(Value a, int power) {
  return raised_by(a, power, exponent(a, power), below_normal(a));
}

Value raised_where(Value cond, Value a, int power) {
  return raised_by(a, power, exponent_where(cond, power, a), below_normal(a));
}

Value lowered(Value a, int power) {
  return lowered_by(a, power, exponent(a, power), lowered_below_normal(a, power));
}

Value lowered_where(Value cond, Value a, int power, bool others_large) {
  Value subnormal = lowered_below_normal(a, power);
  if (!others_large) subnormal = both(cond, subnormal);
  return lowered_by(a, power, exponent_where(cond, power, a), subnormal);
}

Value units_of(Value x) {
  int64_t fraction = (int64_t{1} << fraction_bits(x)) - 1;
  return number_of(bit_and(to_bits(x), fraction), x);
}

Value bits_of_units(Value units) {
  Value magic = units.make(std::ldexp(1.0, fraction_bits(units)));
  return to_bits(units + magic) - to_bits(magic);
}

Value rarely(Value cond, Value usual, const std::function<Value()>& other) {
  Builder& b = *usual.b;
  Val init[] = {usual.v};
  auto body = [&](std::span<const Val> now) {
    return std::vector<Val>{b.select(cond.v, other().v, now[0])};
  };
  return {&b, b.rarely(cond.v, init, body)[0]};
}

}  // namespace tenon::kir::math
