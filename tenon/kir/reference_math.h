// The mathematical functions of kernel.h through the C library, in a wider type than the result's:
// the meaning that expand_math's arithmetic approximates.
#pragma once

#include "tenon/kir/kernel.h"

namespace tenon::kir {

// `op` is a math operation; `b` is used by two-argument functions only. Within 1 ulp.
float reference_math(Op op, float a, float b);
double reference_math(Op op, double a, double b);

// The same before the result is rounded: within a few ulp of the wide type.
double wide_reference_math(Op op, double a, double b);
long double wide_reference_math(Op op, long double a, long double b);

}  // namespace tenon::kir
