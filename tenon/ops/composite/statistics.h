// Statistics over axes. f16 and bf16 compute in f32 and are rounded once at the end; integers and
// bool become float_of(dtype).
#pragma once

#include "tenon/ops/ops.h"

namespace tenon::ops {

// NaN for no elements, as in NumPy.
Value mean(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
           LocationPtr location = nullptr);
// The mean squared distance from the mean in two passes; divides by the count less `ddof`.
Value var(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false, int64_t ddof = 0,
          LocationPtr location = nullptr);
// sqrt(var): NumPy's std.
Value stddev(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
             int64_t ddof = 0, LocationPtr location = nullptr);
// x less its mean over the axes, the mean's own rounding error taken out: exact for values that lie
// close together far from 0.
Value centered(const Value& x, const Axes& axes, LocationPtr location = nullptr);
// log(sum(exp(x))) without overflow; -inf for no elements.
Value logsumexp(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
                LocationPtr location = nullptr);

// The operand in the type that these compute in.
Value to_compute(const Value& x, LocationPtr location = nullptr);

}  // namespace tenon::ops
