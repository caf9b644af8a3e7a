// Arrays from numbers and shapes, and clip.
#pragma once

#include "tenon/ops/ops.h"

namespace tenon::ops {

Value full(Shape shape, const Value& value, LocationPtr location = nullptr);
Value zeros(Shape shape, DType dtype, LocationPtr location = nullptr);
Value ones(Shape shape, DType dtype, LocationPtr location = nullptr);
// 0, 1, … stop-1.
Value arange(const Dim& stop, DType dtype = DType::kI64, LocationPtr location = nullptr);
// start, start+step, … before stop. ValueError [arange_c1] for a step of 0.
Value arange(int64_t start, int64_t stop, int64_t step, DType dtype = DType::kI64,
             LocationPtr location = nullptr);
// Ones where column = row + k.
Value eye(const Dim& rows, const Dim& columns, int64_t k, DType dtype,
          LocationPtr location = nullptr);
// Ones where column ≤ row + k.
Value tri(const Dim& rows, const Dim& columns, int64_t k, DType dtype,
          LocationPtr location = nullptr);
// The lower (upper) triangle of the last two axes: elements with column ≤ row + k (≥).
Value tril(const Value& x, int64_t k = 0, LocationPtr location = nullptr);
Value triu(const Value& x, int64_t k = 0, LocationPtr location = nullptr);
// 1 at the index along a new axis (counted in the result), 0 elsewhere; all 0 for an index outside
// 0 … classes-1.
Value one_hot(const Value& indices, const Dim& classes, DType dtype = DType::kF32,
              int64_t axis = -1, LocationPtr location = nullptr);
// minimum(maximum(x, lo), hi); NaN in any of them wins, and hi wins over lo.
Value clip(const Value& x, const std::optional<Value>& lo, const std::optional<Value>& hi,
           LocationPtr location = nullptr);

}  // namespace tenon::ops
