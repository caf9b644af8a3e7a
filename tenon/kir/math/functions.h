// The expansions behind expand_math, one function each, for f32 and f64, and the cores they share.
// Sources: range reductions after Cody and Waite, "Software Manual for the Elementary Functions"
// (1980), and Payne and Hanek, "Radian Reduction for Trigonometric Functions" (1983); coefficients
// from tools/math/*.sollya.
#pragma once

#include "tenon/kir/math/value.h"

namespace tenon::kir::math {

// --- exponentials ---
Value exp(Value x);
Value exp2(Value x);
Value expm1(Value x);
Value sigmoid(Value x);
Value sinh(Value x);
Value cosh(Value x);
Value tanh(Value x);
// (factor + factor_low) * exp(hi + lo), where each low part is below an ulp of the other and hi <=
// 0 is not subnormal; rounded once where it is subnormal.
Value exp_of_sum(Value hi, Value lo, Value factor, Value factor_low);

// exp(hi + lo) for any hi, with lo below an ulp of it.
Value exp_twofold(Value hi, Value lo);

// --- logarithms ---
Value log(Value x);
Value log2(Value x);
Value log10(Value x);
Value log1p(Value x);
// log2 of an f64 that is not below 2^-1022 (or is 0 or infinity) within 2^-33 of its value: enough
// for f32 results.
Value coarse_log2(Value x);
// log of a positive f64 within 2^-64 of its value.
Twofold log_twofold(Value x);
Value asinh(Value x);
Value acosh(Value x);
Value atanh(Value x);

// --- trigonometry ---
Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
Value atan2(Value y, Value x);

// --- error function ---
Value erf(Value x);
Value erfc(Value x);
Value erfinv(Value x);
Value gelu(Value x);

// --- powers ---
Value cbrt(Value x);
Value pow(Value x, Value y);
Value fmod(Value x, Value y);
Value hypot(Value x, Value y);

}  // namespace tenon::kir::math
