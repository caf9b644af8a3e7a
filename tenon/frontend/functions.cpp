#include "tenon/frontend/functions.h"

#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"
#include "tenon/ops/ops.h"

namespace tenon {

#define TENON_UNARY(NAME, ...) \
  Tensor NAME(const Operand& x) { \
    const Call call(#NAME, {&x}); \
    return call.result(ops::NAME(call[0], call.location())); \
  } \
  Tensor Tensor::NAME(Here at) const { return tenon::NAME(Operand(*this, at)); }
#define TENON_BINARY(NAME, ...) \
  Tensor NAME(const Operand& x, const Operand& y) { \
    const Call call(#NAME, {&x, &y}); \
    return call.result(ops::NAME(call[0], call[1], call.location())); \
  }
#include "tenon/ops/binary.def"
#include "tenon/ops/unary.def"
#undef TENON_UNARY
#undef TENON_BINARY

#define TENON_OPERATOR(SIGN, NAME) \
  Tensor operator SIGN(const Operand& x, const Operand& y) { return NAME(x, y); }
TENON_OPERATOR(+, add)
TENON_OPERATOR(-, sub)
TENON_OPERATOR(*, mul)
TENON_OPERATOR(/, div)
TENON_OPERATOR(%, mod)
TENON_OPERATOR(&, bitwise_and)
TENON_OPERATOR(|, bitwise_or)
TENON_OPERATOR(^, bitwise_xor)
TENON_OPERATOR(<<, left_shift)
TENON_OPERATOR(>>, right_shift)
TENON_OPERATOR(==, equal)
TENON_OPERATOR(!=, not_equal)
TENON_OPERATOR(<, less)
TENON_OPERATOR(<=, less_equal)
TENON_OPERATOR(>, greater)
TENON_OPERATOR(>=, greater_equal)
#undef TENON_OPERATOR
Tensor operator-(const Operand& x) { return neg(x); }
Tensor operator+(const Operand& x) {
  const Call call("positive", {&x});
  return call.result(call[0]);
}
Tensor operator~(const Operand& x) { return bitwise_not(x); }

Tensor where(const Operand& condition, const Operand& x, const Operand& y) {
  const Call choice("where", {&condition});
  const Call call("where", {&x, &y});
  return call.result(ops::where(choice[0], call[0], call[1], call.location()));
}

Tensor clip(const Operand& x, const Operand& low, const Operand& high) {
  return minimum(Operand(maximum(x, low), x.at), high);
}

Tensor cast(const Operand& x, DType dtype) {
  const Call call("cast", {&x});
  return call.result(ops::cast(call[0], dtype, call.location()));
}
Tensor Tensor::cast(DType dtype, Here at) const { return tenon::cast(Operand(*this, at), dtype); }

// --- without operands ---

namespace {

Tensor filled(const Shape& shape, double value, DType dtype, Here at) {
  const ir::LocationPtr location = location_of(at);
  return wrap(ops::broadcast_to(ops::scalar(dtype, value, location), shape, location));
}

// column - row over a matrix, as i64.
ir::Value diagonal_of(const Dim& rows, const Dim& columns, const ir::LocationPtr& location) {
  const Shape shape{rows, columns};
  return ops::sub(ops::iota(shape, 1, i64, location), ops::iota(shape, 0, i64, location), location);
}

}  // namespace

Tensor zeros(const Shape& shape, DType dtype, Here at) { return filled(shape, 0, dtype, at); }
Tensor ones(const Shape& shape, DType dtype, Here at) { return filled(shape, 1, dtype, at); }

Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype) {
  const Call call("full", {&value});
  const ir::Value one = dtype ? ops::cast(call[0], *dtype, call.location()) : call[0];
  return call.result(ops::broadcast_to(one, shape, call.location()));
}

Tensor arange(const Dim& stop, DType dtype, Here at) {
  return wrap(ops::iota({dim_max(stop, 0)}, 0, dtype, location_of(at)));
}

Tensor arange(int64_t start, int64_t stop, int64_t step, DType dtype, Here at) {
  const ir::LocationPtr location = location_of(at);
  if (step == 0) {
    throw ValueError("arange: the step is 0", {.label = "arange_c1", .location = str(location)});
  }
  const int64_t span = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t count = span <= 0 ? 0 : (span + stride - 1) / stride;
  const ir::Value i = ops::iota({count}, 0, i64, location);
  const ir::Value scaled = ops::mul(i, ops::scalar_int(i64, step, location), location);
  const ir::Value moved = ops::add(scaled, ops::scalar_int(i64, start, location), location);
  return wrap(ops::cast(moved, dtype, location));
}

Tensor eye(const Dim& rows, std::optional<Dim> columns, int64_t k, DType dtype, Here at) {
  const ir::LocationPtr location = location_of(at);
  const ir::Value diagonal = diagonal_of(rows, columns.value_or(rows), location);
  const ir::Value on = ops::equal(diagonal, ops::scalar_int(i64, k, location), location);
  return wrap(ops::cast(on, dtype, location));
}

Tensor tri(const Dim& rows, std::optional<Dim> columns, int64_t k, DType dtype, Here at) {
  const ir::LocationPtr location = location_of(at);
  const ir::Value diagonal = diagonal_of(rows, columns.value_or(rows), location);
  const ir::Value below = ops::less_equal(diagonal, ops::scalar_int(i64, k, location), location);
  return wrap(ops::cast(below, dtype, location));
}

Tensor iota(const Shape& shape, int64_t axis, DType dtype, Here at) {
  return wrap(ops::iota(shape, axis, dtype, location_of(at)));
}

Tensor one_hot(const Operand& indices, const Dim& count, DType dtype) {
  const Call call("one_hot", {&indices});
  const auto axis = static_cast<int64_t>(call[0].shape().size());
  const ir::Value columns = ops::iota({count}, 0, i64, call.location());
  const ir::Value wanted =
      ops::cast(ops::expand_dims(call[0], {axis}, call.location()), i64, call.location());
  const ir::Value hit = ops::equal(wanted, columns, call.location());
  return call.result(ops::cast(hit, dtype, call.location()));
}

// --- reductions ---

#define TENON_REDUCTION(NAME) \
  Tensor NAME(const Operand& x, const Axes& axes, bool keepdims) { \
    const Call call(#NAME, {&x}); \
    return call.result(ops::NAME(call[0], axes.list, keepdims, call.location())); \
  } \
  Tensor Tensor::NAME(const Axes& axes, bool keepdims, Here at) const { \
    return tenon::NAME(Operand(*this, at), axes, keepdims); \
  }
TENON_REDUCTION(sum)
TENON_REDUCTION(prod)
TENON_REDUCTION(max)
TENON_REDUCTION(min)
TENON_REDUCTION(any)
TENON_REDUCTION(all)
#undef TENON_REDUCTION

Tensor argmax(const Operand& x, std::optional<int64_t> axis, bool keepdims) {
  const Call call("argmax", {&x});
  return call.result(ops::argmax(call[0], axis, keepdims, call.location()));
}

Tensor argmin(const Operand& x, std::optional<int64_t> axis, bool keepdims) {
  const Call call("argmin", {&x});
  return call.result(ops::argmin(call[0], axis, keepdims, call.location()));
}

Tensor cumsum(const Operand& x, int64_t axis) {
  const Call call("cumsum", {&x});
  return call.result(ops::cumsum(call[0], axis, false, false, call.location()));
}

Tensor matmul(const Operand& x, const Operand& y) {
  const Call call("matmul", {&x, &y});
  return call.result(ops::matmul(call[0], call[1], call.location()));
}

// --- movement ---

Tensor reshape(const Operand& x, const Shape& shape) {
  const Call call("reshape", {&x});
  return call.result(ops::reshape(call[0], shape, call.location()));
}
Tensor Tensor::reshape(const Shape& shape, Here at) const {
  return tenon::reshape(Operand(*this, at), shape);
}

Tensor transpose(const Operand& x, const Axes& perm) {
  const Call call("transpose", {&x});
  return call.result(ops::transpose(call[0], perm.list, call.location()));
}
Tensor Tensor::transpose(const Axes& perm, Here at) const {
  return tenon::transpose(Operand(*this, at), perm);
}

Tensor swap_axes(const Operand& x, int64_t a, int64_t b) {
  const Call call("swap_axes", {&x});
  return call.result(ops::swap_axes(call[0], a, b, call.location()));
}

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  const Call call("broadcast_to", {&x});
  return call.result(ops::broadcast_to(call[0], shape, call.location()));
}
Tensor Tensor::broadcast_to(const Shape& shape, Here at) const {
  return tenon::broadcast_to(Operand(*this, at), shape);
}

Tensor squeeze(const Operand& x, const Axes& axes) {
  const Call call("squeeze", {&x});
  return call.result(ops::squeeze(call[0], axes.list, call.location()));
}
Tensor Tensor::squeeze(const Axes& axes, Here at) const {
  return tenon::squeeze(Operand(*this, at), axes);
}

Tensor expand_dims(const Operand& x, const Axes& axes) {
  const Call call("expand_dims", {&x});
  return call.result(
      ops::expand_dims(call[0], axes.list.value_or(std::vector<int64_t>{}), call.location()));
}
Tensor Tensor::expand_dims(const Axes& axes, Here at) const {
  return tenon::expand_dims(Operand(*this, at), axes);
}

Tensor flip(const Operand& x, const Axes& axes) {
  const Call call("flip", {&x});
  return call.result(ops::flip(call[0], axes.list, call.location()));
}

Tensor tile(const Operand& x, const std::vector<int64_t>& repeats) {
  const Call call("tile", {&x});
  return call.result(ops::tile(call[0], repeats, call.location()));
}

Tensor pad(const Operand& x, const Shape& before, const Shape& after, const Operand& value) {
  const Call call("pad", {&x, &value});
  return call.result(ops::pad(call[0], before, after, call[1], call.location()));
}

Tensor concatenate(const std::vector<Tensor>& parts, int64_t axis, Here at) {
  const Call call("concatenate", parts, at);
  return call.result(ops::concatenate(call.values(), axis, call.location()));
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, Here at) {
  const Call call("stack", parts, at);
  return call.result(ops::stack(call.values(), axis, call.location()));
}

std::vector<Tensor> split(const Operand& x, int64_t parts, int64_t axis) {
  const Call call("split", {&x});
  return call.results(ops::split(call[0], parts, axis, call.location()));
}

namespace {

std::vector<int64_t> every_axis(size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

}  // namespace

Tensor dynamic_slice(const Operand& x, const std::vector<Tensor>& starts, const Shape& sizes) {
  const Call call("dynamic_slice", {&x});
  const Call at("dynamic_slice", starts, x.at);
  return call.result(
      ops::dynamic_slice(call[0], at.values(), every_axis(starts.size()), sizes, call.location()));
}

Tensor dynamic_slice_update(const Operand& x, const Operand& update,
                            const std::vector<Tensor>& starts) {
  const Call call("dynamic_slice_update", {&x, &update});
  const Call at("dynamic_slice_update", starts, x.at);
  return call.result(ops::dynamic_slice_update(call[0], call[1], at.values(),
                                               every_axis(starts.size()), call.location()));
}

Tensor take(const Operand& x, const Operand& indices, int64_t axis) {
  const Call call("take", {&x});
  const Call where("take", {&indices});
  return call.result(ops::take(call[0], where[0], axis, call.location()));
}

Tensor take_along_axis(const Operand& x, const Operand& indices, int64_t axis) {
  const Call call("take_along_axis", {&x});
  const Call where("take_along_axis", {&indices});
  return call.result(ops::take_along_axis(call[0], where[0], axis, call.location()));
}

}  // namespace tenon
