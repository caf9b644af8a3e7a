// The scalar functions of scalar.h on kernel values: applying a row's expression to these emits its
// code. Equal to the numbers bit for bit, the functions of expand_math excepted.
#pragma once

#include "tenon/kir/builder.h"

namespace tenon::ops::elt {

// A value in a register with its arithmetic type: f16 and bf16 elements are f32 here.
struct Sym {
  kir::Builder* b = nullptr;
  kir::Val v = nullptr;
  DType dtype = DType::kF32;

  kir::Type type() const { return kir::type_of(dtype); }
  Sym with(kir::Val value) const { return {b, value, dtype}; }
  Sym flag(kir::Val value) const { return {b, value, DType::kBool}; }
};

Sym num(Sym like, double value);
Sym select(Sym condition, Sym a, Sym b);

Sym plus(Sym x, Sym y);
Sym minus(Sym x, Sym y);
Sym times(Sym x, Sym y);
Sym negate(Sym x);
Sym divide(Sym x, Sym y);
Sym magnitude(Sym x);
Sym sign(Sym x);

Sym is_nan(Sym x);
Sym is_inf(Sym x);
Sym sign_bit(Sym x);
Sym larger(Sym x, Sym y);
Sym smaller(Sym x, Sym y);
Sym with_sign(Sym x, Sym y);

Sym quotient(Sym x, Sym y);
Sym remainder(Sym x, Sym y);
Sym floor_quotient(Sym x, Sym y);
Sym modulo(Sym x, Sym y);

Sym bit_not(Sym x);
Sym bit_and(Sym x, Sym y);
Sym bit_or(Sym x, Sym y);
Sym bit_xor(Sym x, Sym y);
Sym shift_left(Sym x, Sym y);
Sym shift_right(Sym x, Sym y);

Sym eq(Sym x, Sym y);
Sym lt(Sym x, Sym y);
Sym le(Sym x, Sym y);
Sym both(Sym a, Sym b);
Sym either(Sym a, Sym b);
Sym negation(Sym a);

Sym round_down(Sym x);
Sym round_up(Sym x);
Sym round_to_zero(Sym x);
Sym round_to_even(Sym x);
Sym square_root(Sym x);

Sym exp(Sym x);
Sym exp2(Sym x);
Sym expm1(Sym x);
Sym log(Sym x);
Sym log2(Sym x);
Sym log10(Sym x);
Sym log1p(Sym x);
Sym sin(Sym x);
Sym cos(Sym x);
Sym tan(Sym x);
Sym asin(Sym x);
Sym acos(Sym x);
Sym atan(Sym x);
Sym sinh(Sym x);
Sym cosh(Sym x);
Sym tanh(Sym x);
Sym asinh(Sym x);
Sym acosh(Sym x);
Sym atanh(Sym x);
Sym erf(Sym x);
Sym erfc(Sym x);
Sym erfinv(Sym x);
Sym cbrt(Sym x);
Sym gelu(Sym x);
Sym sigmoid(Sym x);
Sym atan2(Sym y, Sym x);
Sym hypot(Sym x, Sym y);
Sym power(Sym x, Sym y);

}  // namespace tenon::ops::elt
