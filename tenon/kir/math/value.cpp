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

// The bits of a subnormal number with an exponent more are those of a number that is 2^(1 - bias +
// power) above it.
Value raised(Value a, int power) {
  Value bits = to_bits(a), subnormal = below_normal(a);
  Value up = bits.make_int(int64_t{power} << fraction_bits(a));
  Value one_more = bits.make_int(int64_t{power + 1} << fraction_bits(a));
  Value above = select(subnormal, std::ldexp(1.0, power + 1 - bias(a)), a.make(0.0));
  return from_bits(bits + select(subnormal, one_more, up)) - above;
}

Value lowered(Value a, int power) {
  Value first = a.make(std::ldexp(1.0, power + 1 - bias(a)));
  Value subnormal = a < first;
  Value bits = to_bits(a + select(subnormal, first, a.make(0.0)));
  Value up = bits.make_int(int64_t{power} << fraction_bits(a));
  Value one_more = bits.make_int(int64_t{power + 1} << fraction_bits(a));
  return from_bits(bits - select(subnormal, one_more, up));
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
