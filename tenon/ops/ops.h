// Every op as a function from values to a value: what frontends, composites and transforms build
// graphs with. Operands of binary functions are promoted to a common dtype by explicit casts and
// broadcast inside the op; axes may be negative. Errors are labelled and carry `location`.
//
// Two ways to the definitions: op::<name> is the constant OpDef (`node.op == &op::matmul`), and
// docs/ops.md lists them all.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tenon/ir/op_def.h"

namespace tenon::ops {

using ir::LocationPtr;
using ir::Value;
using Axes = std::optional<std::vector<int64_t>>;  // nullopt: all axes

namespace op {
#define TENON_UNARY(NAME, ...) extern const ir::OpDef NAME;
#define TENON_BINARY(NAME, ...) extern const ir::OpDef NAME;
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY
extern const ir::OpDef where, cast;
extern const ir::OpDef iota, size;
extern const ir::OpDef sum, prod, max, min, any, all;
extern const ir::OpDef argmax, argmin;
extern const ir::OpDef matmul;
extern const ir::OpDef reshape, transpose, broadcast_to, squeeze, expand_dims;
extern const ir::OpDef slice, dynamic_slice, slice_update;
extern const ir::OpDef concatenate, pad;
extern const ir::OpDef take, take_along_axis;
extern const ir::OpDef scatter, put_along_axis;
extern const ir::OpDef cumsum, cumprod, cummax, cummin;
extern const ir::OpDef sort, merge_sorted, order_key;
extern const ir::OpDef threefry;
}  // namespace op

// True when the node has no kernel form and programs run it through its reference evaluation: an
// operand or result is c64, the op is kHost, or it decodes a registered encoding.
bool needs_host(const ir::Node& node);

// --- elementwise: unary.def and binary.def ---
//
// Ops of floats take integers by way of float_of(); logical ops take every real dtype (not 0).
#define TENON_UNARY(NAME, ...) Value NAME(const Value& x, LocationPtr location = nullptr);
#define TENON_BINARY(NAME, ...) \
  Value NAME(const Value& x, const Value& y, LocationPtr location = nullptr);
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

// The float that an integer becomes where an op takes floats only: f32 up to 16 bits and for bool,
// else f64.
DType float_of(DType dtype);

// x where `condition` (bool), else y; all three broadcast.
Value where(const Value& condition, const Value& x, const Value& y, LocationPtr location = nullptr);
// NumPy's astype: float to integer truncates, saturates and makes NaN 0; to bool: not 0; integers
// wrap; c64 to real drops the imaginary part. x itself when it has that dtype.
Value cast(const Value& x, DType dtype, LocationPtr location = nullptr);

// --- leaves ---
//
// A 0-d constant. Raises ValueError when `value` does not fit the dtype.
Value scalar(DType dtype, double value, LocationPtr location = nullptr);
Value scalar_int(DType dtype, int64_t value, LocationPtr location = nullptr);
// The product of dimensions as a 0-d tensor: a constant where it is static.
Value size(const Shape& dims, DType dtype, LocationPtr location = nullptr);
// The index along `axis` at each position of `shape`.
Value iota(Shape shape, int64_t axis, DType dtype, LocationPtr location = nullptr);

// --- reductions: keepdims leaves dimensions of 1 ---
//
// Integers and bool sum and multiply in i64 or u64; f16, bf16 and f32 accumulate in at least f32,
// blocked, and f16 and bf16 results are rounded once.
Value sum(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
          LocationPtr location = nullptr);
Value prod(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
           LocationPtr location = nullptr);
// NaN wins. No elements: ValueError, when the size is static while building, else when it runs.
Value max(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
          LocationPtr location = nullptr);
// With the attribute shift: NaN may be passed over; no elements give the lowest value (-inf).
Value max_or_lowest(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
                    LocationPtr location = nullptr);
Value min(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
          LocationPtr location = nullptr);
Value any(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
          LocationPtr location = nullptr);
Value all(const Value& x, const Axes& axes = std::nullopt, bool keepdims = false,
          LocationPtr location = nullptr);
// i64 position of the first largest (smallest) element, of the first NaN if there is one; without
// an axis, in the flattened operand.
Value argmax(const Value& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false,
             LocationPtr location = nullptr);
Value argmin(const Value& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false,
             LocationPtr location = nullptr);
// Running sum; f16, bf16 and f32 accumulate in f64 and every element is rounded once; integers sum
// as in sum().
Value cumsum(const Value& x, int64_t axis, bool reverse = false, bool exclusive = false,
             LocationPtr location = nullptr);
// Running product, as cumsum; 1 before the first element.
Value cumprod(const Value& x, int64_t axis, bool reverse = false, bool exclusive = false,
              LocationPtr location = nullptr);
// The largest (smallest) element so far, in x's dtype; NaN once there was one. Before the first
// element stands the least (greatest) value of the dtype.
Value cummax(const Value& x, int64_t axis, bool reverse = false, bool exclusive = false,
             LocationPtr location = nullptr);
Value cummin(const Value& x, int64_t axis, bool reverse = false, bool exclusive = false,
             LocationPtr location = nullptr);

// --- order: ops/order.h ---
//
// Along an axis; equal elements stay as they stood, -0 equals 0, NaN is larger than every number
// (and loses its sign).
Value sort(const Value& x, int64_t axis = -1, bool descending = false,
           LocationPtr location = nullptr);
// The i64 positions of the elements in that order. Rows of at most 2^32 elements.
Value argsort(const Value& x, int64_t axis = -1, bool descending = false,
              LocationPtr location = nullptr);
// The k largest (smallest) elements, best first, and their i64 positions, the first ones among
// equals. ValueError [top_k_c1] for a negative k and for one above the size of the axis; of an axis
// whose size has a name, no more than there are.
struct TopK {
  Value values;
  Value indices;
};
TopK top_k(const Value& x, int64_t k, int64_t axis = -1, bool largest = true,
           LocationPtr location = nullptr);

// --- products ---
// NumPy's matmul: batching, broadcasting, 1-d operands. f16 and bf16 accumulate in f32; f32 with a
// f16 or bf16 operand reads it straight and gives f32; integers wrap.
Value matmul(const Value& x, const Value& y, LocationPtr location = nullptr);

// --- movement ---
// One dimension may be -1: what is left.
Value reshape(const Value& x, Shape shape, LocationPtr location = nullptr);
// Result axis i is axis perm[i]; without perm, all axes reversed.
Value transpose(const Value& x, const Axes& perm = std::nullopt, LocationPtr location = nullptr);
Value swap_axes(const Value& x, int64_t a, int64_t b, LocationPtr location = nullptr);
Value broadcast_to(const Value& x, Shape shape, LocationPtr location = nullptr);
// Without axes: every dimension that is the number 1.
Value squeeze(const Value& x, const Axes& axes = std::nullopt, LocationPtr location = nullptr);
// Axes count in the result.
Value expand_dims(const Value& x, std::vector<int64_t> axes, LocationPtr location = nullptr);

// Python's slice of one axis: negative bounds count from the end, all bounds are clamped, steps may
// be negative, missing bounds are the ends.
struct SliceBound {
  std::optional<Dim> start = std::nullopt;
  std::optional<Dim> stop = std::nullopt;
  int64_t step = 1;
};
// Axes beyond `bounds` are taken whole. Raises ValueError [slice_c1] for a step of 0.
Value slice(const Value& x, std::span<const SliceBound> bounds, LocationPtr location = nullptr);
// x[start:stop:step] along one axis.
Value slice_axis(const Value& x, int64_t axis, const SliceBound& bound,
                 LocationPtr location = nullptr);
// x[i] along `axis`, which goes away. IndexError [index_c1] where i is certainly outside.
Value index(const Value& x, int64_t axis, const Dim& i, LocationPtr location = nullptr);
// The window of `sizes` at run-time `starts` (0-d integers, one per axis of `axes`; other axes are
// taken whole and their entry in `sizes` is ignored). A start is clamped to 0 … dimension - size:
// the window is always whole.
Value dynamic_slice(const Value& x, std::vector<Value> starts, std::vector<int64_t> axes,
                    const Shape& sizes, LocationPtr location = nullptr);
// x with the elements x[bounds] replaced by `update`, cast to x's dtype and broadcast to the slice.
Value slice_update(const Value& x, const Value& update, std::span<const SliceBound> bounds,
                   LocationPtr location = nullptr);
// x with the window of update's shape at run-time `starts` replaced; starts as in dynamic_slice.
Value dynamic_slice_update(const Value& x, const Value& update, std::vector<Value> starts,
                           std::vector<int64_t> axes, LocationPtr location = nullptr);
Value flip(const Value& x, const Axes& axes = std::nullopt, LocationPtr location = nullptr);

Value concatenate(const std::vector<Value>& parts, int64_t axis = 0,
                  LocationPtr location = nullptr);
Value stack(const std::vector<Value>& parts, int64_t axis = 0, LocationPtr location = nullptr);
// `parts` equal pieces. ValueError [split_c1] when the axis is not known to divide.
std::vector<Value> split(const Value& x, int64_t parts, int64_t axis = 0,
                         LocationPtr location = nullptr);
// Pieces that end at `ends` (NumPy's indices form), and the rest.
std::vector<Value> split_at(const Value& x, const std::vector<Dim>& ends, int64_t axis = 0,
                            LocationPtr location = nullptr);
// `before` and `after` new elements per axis holding `value` (cast to x's dtype).
Value pad(const Value& x, const Shape& before, const Shape& after, const Value& value,
          LocationPtr location = nullptr);
Value tile(const Value& x, const std::vector<int64_t>& repeats, LocationPtr location = nullptr);

// --- indexing by tensors ---
//
// x[..., indices, ...] along `axis`: indices' dimensions stand in its place. Negative indices count
// from the end; others out of range are an IndexError when it runs.
Value take(const Value& x, const Value& indices, int64_t axis = 0, LocationPtr location = nullptr);
// Like NumPy's: indices have x's rank and broadcast against it outside `axis`.
Value take_along_axis(const Value& x, const Value& indices, int64_t axis,
                      LocationPtr location = nullptr);
// x with updates at the positions that take(x, indices, axis) reads. `updates`, cast to x's dtype,
// broadcast to its result. Mode "set": the last update of a position wins; "add", "mul", "min",
// "max" (NaN wins): x's element and the updates of its position in the row-major order of the
// indices; add and mul of f16 and bf16 accumulate in f32 and round once. ValueError [scatter_c4]
// for another mode.
Value scatter(const Value& x, const Value& indices, const Value& updates, int64_t axis = 0,
              const std::string& mode = "set", LocationPtr location = nullptr);
// The same at the positions that take_along_axis reads; indices broadcast against x outside `axis`.
Value put_along_axis(const Value& x, const Value& indices, const Value& updates, int64_t axis,
                     const std::string& mode = "set", LocationPtr location = nullptr);

// --- random: composite/random.h ---
//
// Threefry-2x32 with 20 rounds (Salmon et al., SC 2011): u64 from two u32 key words and a u64
// counter, broadcast; the first output word is the low half.
Value threefry(const Value& key0, const Value& key1, const Value& counter,
               LocationPtr location = nullptr);

}  // namespace tenon::ops
