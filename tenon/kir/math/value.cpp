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

Value rarely(Value cond, Value usual, const std::function<Value()>& other) {
  Builder& b = *usual.b;
  Val init[] = {usual.v};
  auto body = [&](std::span<const Val> now) {
    return std::vector<Val>{b.select(cond.v, other().v, now[0])};
  };
  return {&b, b.rarely(cond.v, init, body)[0]};
}

}  // namespace tenon::kir::math
