// Notation for the expansions of math/: values with operators that emit through a Builder. A double
// beside a value becomes a constant of the value's type.
#pragma once

#include <functional>
#include <initializer_list>

#include "tenon/kir/builder.h"

namespace tenon::kir::math {

struct Value {
  Builder* b = nullptr;
  Val v = nullptr;

  Type type() const { return v->type; }
  bool is_f64() const { return v->type == Type::kF64; }
  Value make(double c) const { return {b, b->constant_float(v->type, c)}; }
  Value make_int(int64_t c) const { return {b, b->constant_int(v->type, c)}; }
  // A constant that differs between f32 and f64.
  Value pick(double f32, double f64) const { return make(is_f64() ? f64 : f32); }
};

inline Value unary(Op op, Value a) { return {a.b, a.b->unary(op, a.v)}; }
inline Value binary(Op op, Value a, Value c) { return {a.b, a.b->binary(op, a.v, c.v)}; }

inline Value operator+(Value a, Value c) { return binary(Op::kAdd, a, c); }
inline Value operator-(Value a, Value c) { return binary(Op::kSub, a, c); }
inline Value operator*(Value a, Value c) { return binary(Op::kMul, a, c); }
inline Value operator/(Value a, Value c) { return binary(Op::kDiv, a, c); }
inline Value operator+(Value a, double c) { return a + a.make(c); }
inline Value operator-(Value a, double c) { return a - a.make(c); }
inline Value operator-(double a, Value c) { return c.make(a) - c; }
inline Value operator*(Value a, double c) { return a * a.make(c); }
inline Value operator/(double a, Value c) { return c.make(a) / c; }
inline Value operator-(Value a) { return unary(Op::kNeg, a); }
inline Value abs(Value a) { return unary(Op::kAbs, a); }
inline Value sqrt(Value a) { return unary(Op::kSqrt, a); }
inline Value copysign(Value a, Value sign) { return binary(Op::kCopySign, a, sign); }
// a * 2^power, rounded once, within the bounds of Op::kScale.
inline Value scale(Value a, Value power) { return binary(Op::kScale, a, power); }

// a*c + d, fused where the target has it.
inline Value muladd(Value a, Value c, Value d) {
  return {a.b, a.b->ternary(Op::kMulAdd, a.v, c.v, d.v)};
}
inline Value muladd(Value a, double c, Value d) { return muladd(a, a.make(c), d); }
inline Value muladd(Value a, Value c, double d) { return muladd(a, c, a.make(d)); }
inline Value muladd(Value a, double c, double d) { return muladd(a, a.make(c), a.make(d)); }
// a*c + d where d is -a*c but for a few roundings: without loss.
inline Value residual(Value a, Value c, Value d) {
  return {a.b, a.b->ternary(Op::kResidual, a.v, c.v, d.v)};
}

// Comparisons of floats; false with NaN.
inline Value cmp(Pred pred, Value a, Value c) { return {a.b, a.b->cmp(pred, a.v, c.v)}; }
inline Value operator<(Value a, Value c) { return cmp(Pred::kFLt, a, c); }
inline Value operator<(Value a, double c) { return a < a.make(c); }
inline Value operator>(Value a, Value c) { return cmp(Pred::kFGt, a, c); }
inline Value operator>(Value a, double c) { return a > a.make(c); }
inline Value equal(Value a, Value c) { return cmp(Pred::kEq, a, c); }
inline Value equal(Value a, double c) { return equal(a, a.make(c)); }
inline Value is_nan(Value a) { return cmp(Pred::kUno, a, a); }
inline Value select(Value cond, Value a, Value c) { return {a.b, a.b->select(cond.v, a.v, c.v)}; }
inline Value select(Value cond, Value a, double c) { return select(cond, a, a.make(c)); }
inline Value select(Value cond, double a, Value c) { return select(cond, c.make(a), c); }
inline Value either(Value a, Value c) { return binary(Op::kOr, a, c); }
inline Value both(Value a, Value c) { return binary(Op::kAnd, a, c); }

// Bounds that let NaN through.
inline Value at_most(Value a, double limit) { return binary(Op::kFMinFast, a.make(limit), a); }
inline Value at_least(Value a, double limit) { return binary(Op::kFMaxFast, a.make(limit), a); }

// The same bits as an integer of the same width, and back.
inline Value to_bits(Value a) {
  return {a.b, a.b->convert(Op::kBitcast, a.is_f64() ? Type::kI64 : Type::kI32, a.v)};
}
inline Value from_bits(Value a) {
  Type type = a.type() == Type::kI64 ? Type::kF64 : Type::kF32;
  return {a.b, a.b->convert(Op::kBitcast, type, a.v)};
}
inline Value convert(Op op, Type to, Value a) { return {a.b, a.b->convert(op, to, a.v)}; }
inline Value add_int(Value a, int64_t c) { return a + a.make_int(c); }
inline Value shl(Value a, int64_t by) { return binary(Op::kShl, a, a.make_int(by)); }
inline Value ashr(Value a, int64_t by) { return binary(Op::kAShr, a, a.make_int(by)); }
inline Value lshr(Value a, int64_t by) { return binary(Op::kLShr, a, a.make_int(by)); }
inline Value bit_and(Value a, int64_t c) { return binary(Op::kAnd, a, a.make_int(c)); }
inline Value bit_xor(Value a, Value c) { return binary(Op::kXor, a, c); }

using Coefficients = std::initializer_list<double>;

// c[0] + x*(c[1] + x*(…)).
Value polynomial(Value x, Coefficients c);
// The list of the value's type.
inline Value polynomial(Value x, Coefficients f32, Coefficients f64) {
  return polynomial(x, x.is_f64() ? f64 : f32);
}

// Bits of the significand after the point, and the exponent's bias.
inline int fraction_bits(Value a) { return a.is_f64() ? 52 : 23; }
inline int bias(Value a) { return a.is_f64() ? 1023 : 127; }

// x to the nearest integer: as a float, and in the low bits of `bits` (an integer of x's width)
// plus `offset`. For |x*scale| below 2^22 (f32), 2^51 (f64).
struct Rounded {
  Value number;
  Value bits;
};
Rounded round_scaled(Value x, double scale, int offset = 0);

// A whole number below 2^22 (f32), 2^51 (f64) that stands in the low bits of an integer, as
// `like`'s type; plus `offset`.
Value number_of(Value integer, Value like, double offset = 0);

// A number and what it lost by rounding.
struct Twofold {
  Value high;
  Value low;
};

// a + b for |a| >= |b| (or a = 0), and a * b, without loss.
inline Twofold exact_sum(Value a, Value b) {
  Value sum = a + b;
  return {sum, b - (sum - a)};
}
inline Twofold exact_product(Value a, Value b) {
  Value product = a * b;
  return {product, residual(a, b, -product)};
}

// --- subnormal numbers ---
// Processors take a hundred cycles for products and quotients of subnormal numbers, and for sums
// that become subnormal. Comparisons, extrema and sums with larger numbers cost nothing more.

// f(x), which is x where |x| is below `limit`; f never sees such a number.
Value near_identity(Value x, double limit, const std::function<Value(Value)>& f);

// Whether a magnitude is subnormal or 0.
inline Value least_normal(Value like) { return like.pick(0x1p-126, 0x1p-1022); }
inline Value below_normal(Value a) { return a < least_normal(a); }

// The larger magnitude, in the order of the bits.
inline Value larger_magnitude(Value a, Value c) {
  return from_bits(binary(Op::kSMax, to_bits(a), to_bits(c)));
}

// A magnitude, but some normal number where it is subnormal or 0. (LLVM would turn the product of a
// choice between a number and a constant into a choice between products, and compute them all.)
Value normal_part(Value a);

// Magnitudes times 2^power and 2^-power, rounded once; the larger one is normal or 0.
Value raised(Value a, int power);
Value lowered(Value a, int power);
// The same where `cond` holds, elsewhere `a`; but raised_where gives something negative there where
// it is subnormal. `others_large`: where `cond` does not hold, `a` could be lowered and stay
// normal.
Value raised_where(Value cond, Value a, int power);
Value lowered_where(Value cond, Value a, int power, bool others_large = false);

// Where the square of a number is far below its last place.
inline double tiny_limit(Value x) { return x.is_f64() ? 0x1p-40 : 0x1p-20; }

// |x|, subnormal or 0, in units of the least number: a whole number.
Value units_of(Value x);

// The bits of the magnitude of that many units, rounded to whole ones; for 0 to 2^23 (f32), 2^52
// (f64) units, with which the normal numbers begin.
Value bits_of_units(Value units);

// `usual`, but other() in lanes where `cond` holds; other() is computed only when a lane needs it.
Value rarely(Value cond, Value usual, const std::function<Value()>& other);

}  // namespace tenon::kir::math
