// Every op as a function with NumPy's names and rules. Operands are tensors or C++ numbers; each op
// remembers the line of the user's program that made it. docs/ops.md lists what the ops mean.
#pragma once

#include <string>
#include <vector>

#include "tenon/frontend/index.h"
#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"

namespace tenon {

// --- elementwise: unary.def and binary.def of ops/ ---
#define TENON_UNARY(NAME, ...) Tensor NAME(const Operand& x);
#define TENON_BINARY(NAME, ...) Tensor NAME(const Operand& x, const Operand& y);
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

Tensor operator+(const Operand& x, const Operand& y);
Tensor operator-(const Operand& x, const Operand& y);
Tensor operator*(const Operand& x, const Operand& y);
Tensor operator/(const Operand& x, const Operand& y);  // true division: integers give floats
Tensor operator%(const Operand& x, const Operand& y);  // the sign of y
Tensor operator&(const Operand& x, const Operand& y);
Tensor operator|(const Operand& x, const Operand& y);
Tensor operator^(const Operand& x, const Operand& y);
Tensor operator<<(const Operand& x, const Operand& y);
Tensor operator>>(const Operand& x, const Operand& y);
Tensor operator-(const Operand& x);
Tensor operator+(const Operand& x);
Tensor operator~(const Operand& x);
// Element by element; a branch on one needs a tensor of one element.
Tensor operator==(const Operand& x, const Operand& y);
Tensor operator!=(const Operand& x, const Operand& y);
Tensor operator<(const Operand& x, const Operand& y);
Tensor operator<=(const Operand& x, const Operand& y);
Tensor operator>(const Operand& x, const Operand& y);
Tensor operator>=(const Operand& x, const Operand& y);

// x where `condition`, else y.
Tensor where(const Operand& condition, const Operand& x, const Operand& y);
Tensor clip(const Operand& x, const Operand& low, const Operand& high);
// NumPy's astype; floats to integers truncate and saturate, NaN gives 0.
Tensor cast(const Operand& x, DType dtype);

// --- tensors without operands ---
Tensor zeros(const Shape& shape, DType dtype = f32, Here at = Here::current());
Tensor ones(const Shape& shape, DType dtype = f32, Here at = Here::current());
// A number must be exact in an integer dtype (ValueError) unless it is a float, which is cast.
Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype = std::nullopt);
// start, start + step, … below stop. ValueError for a step of 0. i64, or f32 when one is a float.
Tensor arange(const Dim& stop, DType dtype = i64, Here at = Here::current());
Tensor arange(int64_t start, int64_t stop, int64_t step = 1, DType dtype = i64,
              Here at = Here::current());
// Ones where column - row is k.
Tensor eye(const Dim& rows, std::optional<Dim> columns = std::nullopt, int64_t k = 0,
           DType dtype = f32, Here at = Here::current());
// Ones where column - row is at most k.
Tensor tri(const Dim& rows, std::optional<Dim> columns = std::nullopt, int64_t k = 0,
           DType dtype = f32, Here at = Here::current());
// The index along `axis` at each position.
Tensor iota(const Shape& shape, int64_t axis, DType dtype = i64, Here at = Here::current());
Tensor one_hot(const Operand& indices, const Dim& count, DType dtype = f32);

// --- reductions ---
Tensor sum(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor prod(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor max(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor min(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor any(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor all(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor argmax(const Operand& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false);
Tensor argmin(const Operand& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false);
Tensor cumsum(const Operand& x, int64_t axis);
Tensor cumprod(const Operand& x, int64_t axis);
Tensor cummax(const Operand& x, int64_t axis);
Tensor cummin(const Operand& x, int64_t axis);

// --- order ---
//
// Equal elements stay as they stood, -0 equals 0, NaN is larger than every number.
Tensor sort(const Operand& x, int64_t axis = -1, bool descending = false);
Tensor argsort(const Operand& x, int64_t axis = -1, bool descending = false);  // i64 positions
// The k largest (smallest) elements, best first, and their i64 positions, the first ones among
// equals.
std::pair<Tensor, Tensor> top_k(const Operand& x, int64_t k, int64_t axis = -1,
                                bool largest = true);

// --- products ---
Tensor matmul(const Operand& x, const Operand& y);
// The product of the operands cast to `dtype`, which the result has: i32 for products of bytes that
// do not wrap in them.
Tensor matmul(const Operand& x, const Operand& y, DType dtype);

// --- movement ---
Tensor reshape(const Operand& x, const Shape& shape);  // one size may be -1
Tensor transpose(const Operand& x, const Axes& perm = {});
Tensor swap_axes(const Operand& x, int64_t a, int64_t b);
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor squeeze(const Operand& x, const Axes& axes = {});
Tensor expand_dims(const Operand& x, const Axes& axes);
Tensor flip(const Operand& x, const Axes& axes = {});
Tensor tile(const Operand& x, const std::vector<int64_t>& repeats);
Tensor pad(const Operand& x, const Shape& before, const Shape& after, const Operand& value = 0);
Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis = 0, Here at = Here::current());
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0, Here at = Here::current());
std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis = 0);
// The window of `sizes` at `starts`, one start an axis, known when it runs; clamped so that the
// window is whole.
Tensor dynamic_slice(const Operand& x, const std::vector<Tensor>& starts, const Shape& sizes);
// x with the window of update's shape at `starts` replaced.
Tensor dynamic_slice_update(const Operand& x, const Operand& update,
                            const std::vector<Tensor>& starts);
Tensor take(const Operand& x, const Operand& indices, int64_t axis = 0);
Tensor take_along_axis(const Operand& x, const Operand& indices, int64_t axis);
// x with updates at the positions that take(x, indices, axis) reads; `updates` broadcast to its
// result. Mode "set" (the last update of a position wins), "add", "mul", "min" or "max".
Tensor scatter(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis = 0,
               const std::string& mode = "set");
// The same at the positions that take_along_axis reads.
Tensor put_along_axis(const Operand& x, const Operand& indices, const Operand& updates,
                      int64_t axis, const std::string& mode = "set");

}  // namespace tenon
