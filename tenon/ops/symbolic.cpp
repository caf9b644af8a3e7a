#include "tenon/ops/symbolic.h"

#include <limits>

namespace tenon::ops::elt {

using kir::Op;
using kir::Pred;

namespace {

bool floating(Sym x) { return tenon::is_float(x.dtype); }
bool integral(Sym x) { return tenon::is_integer(x.dtype); }
bool sign_carrying(Sym x) { return tenon::is_signed(x.dtype); }

Sym unary(Op op, Sym x) { return x.with(x.b->unary(op, x.v)); }
Sym binary(Op op, Sym x, Sym y) { return x.with(x.b->binary(op, x.v, y.v)); }
Sym compare(Pred pred, Sym x, Sym y) { return x.flag(x.b->cmp(pred, x.v, y.v)); }

Sym integer(Sym like, int64_t value) { return like.with(like.b->constant_int(like.type(), value)); }
Sym no(Sym like) { return like.flag(like.b->boolean(false)); }

// A divisor that no division traps on, and whether it stands for the given one: 0 and, for signed
// types, -1 become 1.
struct Divisor {
  Sym safe;
  Sym zero;
  Sym minus_one;
};
Divisor guard(Sym y) {
  Divisor d{y, eq(y, integer(y, 0)), no(y)};
  if (sign_carrying(y)) d.minus_one = eq(y, integer(y, -1));
  d.safe = select(either(d.zero, d.minus_one), integer(y, 1), y);
  return d;
}

Sym raw_quotient(Sym x, Sym y) { return binary(sign_carrying(x) ? Op::kSDiv : Op::kUDiv, x, y); }

Sym integer_power(Sym x, Sym y) {
  kir::Builder& b = *x.b;
  const int bits = kir::bits(x.type());
  const Sym one = integer(x, 1);
  const std::vector<kir::CarriedSpec> carried{{one.v}, {x.v}, {y.v}};
  auto step = [&](kir::Val, std::span<const kir::Val> in) -> std::vector<kir::Val> {
    const Sym result = x.with(in[0]);
    const Sym base = x.with(in[1]);
    const Sym rest = x.with(in[2]);
    const Sym odd = eq(bit_and(rest, one), one);
    return {select(odd, times(result, base), result).v, times(base, base).v,
            b.binary(Op::kLShr, rest.v, one.v)};
  };
  const Sym positive = x.with(b.loop(b.i64(0), b.i64(bits), {}, carried, step)[0]);
  if (!sign_carrying(x)) return positive;
  const Sym zero = integer(x, 0);
  const Sym minus_one = integer(x, -1);
  const Sym alternating = select(eq(bit_and(y, one), one), x, one);
  const Sym inverse = select(eq(x, one), one, select(eq(x, minus_one), alternating, zero));
  return select(lt(y, zero), inverse, positive);
}

}  // namespace

Sym num(Sym like, double value) {
  if (floating(like)) return like.with(like.b->constant_float(like.type(), value));
  return integer(like, static_cast<int64_t>(value));
}
Sym select(Sym condition, Sym a, Sym b) { return a.with(a.b->select(condition.v, a.v, b.v)); }

Sym plus(Sym x, Sym y) { return binary(x.dtype == DType::kBool ? Op::kOr : Op::kAdd, x, y); }
Sym minus(Sym x, Sym y) { return binary(Op::kSub, x, y); }
Sym times(Sym x, Sym y) { return binary(x.dtype == DType::kBool ? Op::kAnd : Op::kMul, x, y); }
Sym negate(Sym x) { return unary(Op::kNeg, x); }
Sym divide(Sym x, Sym y) { return binary(Op::kDiv, x, y); }
Sym magnitude(Sym x) { return tenon::is_unsigned(x.dtype) ? x : unary(Op::kAbs, x); }
Sym sign(Sym x) {
  const Sym zero = num(x, 0);
  const Sym one = num(x, 1);
  if (tenon::is_unsigned(x.dtype)) return select(eq(x, zero), zero, one);
  const Sym rest = floating(x) ? select(eq(x, zero), zero, x) : zero;
  return select(lt(zero, x), one, select(lt(x, zero), num(x, -1), rest));
}

Sym is_nan(Sym x) { return floating(x) ? compare(Pred::kUno, x, x) : no(x); }
Sym is_inf(Sym x) {
  if (!floating(x)) return no(x);
  return eq(magnitude(x), num(x, std::numeric_limits<double>::infinity()));
}
Sym sign_bit(Sym x) {
  if (!floating(x)) return sign_carrying(x) ? lt(x, num(x, 0)) : no(x);
  const DType bits_dtype = x.dtype == DType::kF64 ? DType::kI64 : DType::kI32;
  const Sym bits{x.b, x.b->convert(Op::kBitcast, kir::type_of(bits_dtype), x.v), bits_dtype};
  return lt(bits, integer(bits, 0));
}
Sym larger(Sym x, Sym y) {
  if (floating(x)) return binary(Op::kFMax, x, y);
  if (!integral(x)) return binary(Op::kOr, x, y);
  return binary(sign_carrying(x) ? Op::kSMax : Op::kUMax, x, y);
}
Sym smaller(Sym x, Sym y) {
  if (floating(x)) return binary(Op::kFMin, x, y);
  if (!integral(x)) return binary(Op::kAnd, x, y);
  return binary(sign_carrying(x) ? Op::kSMin : Op::kUMin, x, y);
}
Sym with_sign(Sym x, Sym y) { return binary(Op::kCopySign, x, y); }

Sym quotient(Sym x, Sym y) {
  const Divisor d = guard(y);
  const Sym q = raw_quotient(x, d.safe);
  return select(d.zero, integer(x, 0), select(d.minus_one, negate(x), q));
}
Sym remainder(Sym x, Sym y) {
  if (floating(x)) return binary(Op::kFmod, x, y);
  const Divisor d = guard(y);
  const Sym r = minus(x, times(raw_quotient(x, d.safe), d.safe));
  return select(either(d.zero, d.minus_one), integer(x, 0), r);
}
Sym modulo(Sym x, Sym y) {
  const Sym r = remainder(x, y);
  const Sym zero = num(x, 0);
  if (floating(x)) {
    const Sym differ = bit_xor(lt(y, zero), lt(r, zero));
    return select(eq(r, zero), with_sign(zero, y), select(differ, plus(r, y), r));
  }
  if (!sign_carrying(x)) return r;
  const Sym fix = both(negation(eq(r, zero)), lt(bit_xor(r, y), zero));
  return select(fix, plus(r, y), r);
}
Sym floor_quotient(Sym x, Sym y) {
  const Sym zero = num(x, 0);
  const Sym one = num(x, 1);
  if (!floating(x)) {
    const Sym q = quotient(x, y);
    if (!sign_carrying(x)) return q;
    const Sym r = remainder(x, y);
    const Sym fix = both(negation(eq(r, zero)), lt(bit_xor(r, y), zero));
    return select(fix, minus(q, one), q);
  }
  const Sym r = remainder(x, y);
  const Sym fix = both(negation(eq(r, zero)), bit_xor(lt(y, zero), lt(r, zero)));
  const Sym d = divide(minus(x, r), y);
  const Sym q = select(fix, minus(d, one), d);
  const Sym f = round_down(q);
  const Sym near = select(lt(num(x, 0.5), minus(q, f)), plus(f, one), f);
  const Sym plain = divide(x, y);
  const Sym whole = select(eq(q, zero), with_sign(zero, plain), near);
  return select(eq(y, zero), plain, whole);
}

Sym bit_not(Sym x) {
  if (x.dtype == DType::kBool) return negation(x);
  return bit_xor(x, integer(x, -1));
}
Sym bit_and(Sym x, Sym y) { return binary(Op::kAnd, x, y); }
Sym bit_or(Sym x, Sym y) { return binary(Op::kOr, x, y); }
Sym bit_xor(Sym x, Sym y) { return binary(Op::kXor, x, y); }
Sym shift_left(Sym x, Sym y) {
  const int bits = kir::bits(x.type());
  const Sym inside = compare(Pred::kULt, y, integer(y, bits));
  const Sym shifted = binary(Op::kShl, x, bit_and(y, integer(y, bits - 1)));
  return select(inside, shifted, integer(x, 0));
}
Sym shift_right(Sym x, Sym y) {
  const int bits = kir::bits(x.type());
  const Sym inside = compare(Pred::kULt, y, integer(y, bits));
  if (!sign_carrying(x)) {
    const Sym shifted = binary(Op::kLShr, x, bit_and(y, integer(y, bits - 1)));
    return select(inside, shifted, integer(x, 0));
  }
  return binary(Op::kAShr, x, select(inside, y, integer(y, bits - 1)));
}

Sym eq(Sym x, Sym y) { return compare(Pred::kEq, x, y); }
Sym lt(Sym x, Sym y) {
  return compare(floating(x) ? Pred::kFLt : sign_carrying(x) ? Pred::kSLt : Pred::kULt, x, y);
}
Sym le(Sym x, Sym y) {
  return compare(floating(x) ? Pred::kFLe : sign_carrying(x) ? Pred::kSLe : Pred::kULe, x, y);
}
Sym both(Sym a, Sym b) { return binary(Op::kAnd, a, b); }
Sym either(Sym a, Sym b) { return binary(Op::kOr, a, b); }
Sym negation(Sym a) { return a.with(a.b->logical_not(a.v)); }

Sym round_down(Sym x) { return floating(x) ? unary(Op::kFloor, x) : x; }
Sym round_up(Sym x) { return floating(x) ? unary(Op::kCeil, x) : x; }
Sym round_to_zero(Sym x) { return floating(x) ? unary(Op::kTrunc, x) : x; }
Sym round_to_even(Sym x) { return floating(x) ? unary(Op::kRint, x) : x; }
Sym square_root(Sym x) { return unary(Op::kSqrt, x); }

Sym exp(Sym x) { return unary(Op::kExp, x); }
Sym exp2(Sym x) { return unary(Op::kExp2, x); }
Sym expm1(Sym x) { return unary(Op::kExpm1, x); }
Sym log(Sym x) { return unary(Op::kLog, x); }
Sym log2(Sym x) { return unary(Op::kLog2, x); }
Sym log10(Sym x) { return unary(Op::kLog10, x); }
Sym log1p(Sym x) { return unary(Op::kLog1p, x); }
Sym sin(Sym x) { return unary(Op::kSin, x); }
Sym cos(Sym x) { return unary(Op::kCos, x); }
Sym tan(Sym x) { return unary(Op::kTan, x); }
Sym asin(Sym x) { return unary(Op::kAsin, x); }
Sym acos(Sym x) { return unary(Op::kAcos, x); }
Sym atan(Sym x) { return unary(Op::kAtan, x); }
Sym sinh(Sym x) { return unary(Op::kSinh, x); }
Sym cosh(Sym x) { return unary(Op::kCosh, x); }
Sym tanh(Sym x) { return unary(Op::kTanh, x); }
Sym asinh(Sym x) { return unary(Op::kAsinh, x); }
Sym acosh(Sym x) { return unary(Op::kAcosh, x); }
Sym atanh(Sym x) { return unary(Op::kAtanh, x); }
Sym erf(Sym x) { return unary(Op::kErf, x); }
Sym erfc(Sym x) { return unary(Op::kErfc, x); }
Sym erfinv(Sym x) { return unary(Op::kErfinv, x); }
Sym cbrt(Sym x) { return unary(Op::kCbrt, x); }
Sym gelu(Sym x) { return unary(Op::kGelu, x); }
Sym sigmoid(Sym x) { return unary(Op::kSigmoid, x); }
Sym atan2(Sym y, Sym x) { return binary(Op::kAtan2, y, x); }
Sym hypot(Sym x, Sym y) { return binary(Op::kHypot, x, y); }
Sym power(Sym x, Sym y) { return floating(x) ? binary(Op::kPow, x, y) : integer_power(x, y); }

}  // namespace tenon::ops::elt
