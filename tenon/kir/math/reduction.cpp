#include "tenon/kir/math/reduction.h"

#include <array>

namespace tenon::kir::math {

namespace {

// 64 zero bits, then the binary digits of 2/pi.
constexpr std::array<uint64_t, 21> kTwoOverPi = {0,
                                                 0xa2f9836e4e441529,
                                                 0xfc2757d1f534ddc0,
                                                 0xdb6295993c439041,
                                                 0xfe5163abdebbc561,
                                                 0xb7246e3a424dd2e0,
                                                 0x06492eea09d1921c,
                                                 0xfe1deb1cb129a73e,
                                                 0xe88235f52ebb4484,
                                                 0xe99c7026b45f7e41,
                                                 0x3991d639835339f4,
                                                 0x9c845f8bbdf9283b,
                                                 0x1ff897ffde05980f,
                                                 0xef2f118b5a0a6d1f,
                                                 0x6d367ecf27cb09b7,
                                                 0x4f463f669e5fea2d,
                                                 0x7527bac7ebe5f17b,
                                                 0x3d0739f78a5292ea,
                                                 0x6bfb5fb11f8d5d08,
                                                 0x56033046fc7b6bab,
                                                 0xf0cfbc209af4361d};

Angle moderate(Value a, bool precise) {
  Rounded n = round_scaled(at_least(a, 0x1p-20), 0x1.45f306dc9c883p-1);
  auto minus = [&](Value from, double part) { return muladd(n.number, -part, from); };
  Value r = minus(a, a.is_f64() ? 0x1.921fb544p0 : 0x1.92p0);
  if (!a.is_f64()) r = minus(r, 0x1.fb4p-12);
  double third = a.is_f64() ? 0x1.0b4611a6p-34 : 0x1.444p-24;
  double last = a.is_f64() ? 0x1.3198a2e037073p-69 : 0x1.68c234p-39;
  Value sum = minus(r, third);
  if (!precise) return {minus(sum, last), a.make(0.0), n.bits};
  Value low = minus(minus(r - sum, third), last);
  Value angle = sum + low;
  return {angle, low - (angle - sum), n.bits};
}

// 64 digits of 2/pi from digit `position` of the table on; `word` and `shift` are its parts.
Value digits(Value word, Value shift, int64_t offset) {
  Builder& b = *word.b;
  auto entry = [&](int64_t k) {
    return Value{&b, b.table(Type::kI64, kTwoOverPi, add_int(word, k).v)};
  };
  Value next = lshr(entry(offset + 1), 1);
  Value back = shift.make_int(63) - shift;
  return binary(Op::kOr, binary(Op::kShl, entry(offset), shift), binary(Op::kLShr, next, back));
}

// A number of 128 bits, in units of 2^-126 quadrants, modulo 4.
struct Quadrants {
  Value high;
  Value low;
};

// a = m 2^e with m whole; the digits of 2/pi that make multiples of 4 quadrants are left out.
Quadrants product(Value a) {
  int64_t fraction = fraction_bits(a);
  Value bits = to_bits(a);
  Value m = binary(Op::kOr, bit_and(bits, (int64_t{1} << fraction) - 1),
                   bits.make_int(int64_t{1} << fraction));
  Value exponent = lshr(bits, fraction);
  if (a.is_f64())
    exponent = convert(Op::kIntTrunc, Type::kI32, exponent);
  else
    m = convert(Op::kZExt, Type::kI64, m);
  int64_t first = a.is_f64() ? 1013 : 88;
  Value position = binary(Op::kSMax, add_int(exponent, -first), exponent.make_int(0));
  Value word = lshr(position, 6);
  Value shift = convert(Op::kZExt, Type::kI64, bit_and(position, 63));
  Value w1 = digits(word, shift, 0), w2 = digits(word, shift, 1);
  Value low = m * w2;
  Value carry = low.make_int(0);
  if (a.is_f64()) {
    Value partial = low;
    low = low + binary(Op::kUMulHi, m, digits(word, shift, 2));
    carry = convert(Op::kZExt, Type::kI64, cmp(Pred::kULt, low, partial));
  }
  return {m * w1 + binary(Op::kUMulHi, m, w2) + carry, low};
}

Angle any_size(Value a) {
  Quadrants p = product(a);
  Value quadrant = lshr(add_int(p.high, int64_t{1} << 61), 62);
  Value fraction = p.high - shl(quadrant, 62);
  auto number = [&](Op op, Value v, double unit) { return convert(op, Type::kF64, v) * unit; };
  Value nan = a - a;  // for infinities
  if (a.is_f64()) {
    // The leading 26 bits times those of pi/2 are exact.
    Value head = shl(ashr(add_int(fraction, int64_t{1} << 35), 36), 36);
    Value h = number(Op::kSToF, head, 0x1p-62);
    Value t = number(Op::kSToF, fraction - head, 0x1p-62) + number(Op::kUToF, p.low, 0x1p-126);
    Value head_angle = h * 0x1.921fb5p0;
    Value tail_angle = muladd(t, 0x1.921fb54442d18p0, h * 0x1.110b4611a6263p-26);
    Value r = head_angle + tail_angle;
    return {r + nan, tail_angle - (r - head_angle), quadrant};
  }
  Value f = number(Op::kSToF, fraction, 0x1p-62) + number(Op::kUToF, p.low, 0x1p-126);
  Value angle = f * 0x1.921fb54442d18p0;
  Value r = convert(Op::kFTrunc, Type::kF32, angle);
  Value low = convert(Op::kFTrunc, Type::kF32, angle - convert(Op::kFExt, Type::kF64, r));
  return {r + nan, low, convert(Op::kIntTrunc, Type::kI32, quadrant)};
}

}  // namespace

Angle reduce_angle(Value a, bool precise) {
  Angle usual = moderate(a, precise);
  Builder& b = *a.b;
  Value limit = a.pick(6400, 0x1p20);
  Value large = {&b, b.logical_not((a < limit).v)};
  std::vector<Val> init = {usual.r.v, usual.quadrant.v};
  if (precise) init.push_back(usual.low.v);
  auto results = b.rarely(large.v, init, [&](std::span<const Val> now) {
    Angle other = any_size(a);
    std::vector<Val> values = {other.r.v, other.quadrant.v, other.low.v};
    values.resize(now.size());
    for (size_t k = 0; k < now.size(); ++k) values[k] = b.select(large.v, values[k], now[k]);
    return values;
  });
  return {{&b, results[0]}, precise ? Value{&b, results[2]} : usual.low, {&b, results[1]}};
}

}  // namespace tenon::kir::math
