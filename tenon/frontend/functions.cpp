#include "tenon/frontend/functions.h"

#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"
#include "tenon/ops/composite/arrays.h"
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

}  // namespace

Tensor zeros(const Shape& shape, DType dtype, Here at) { return filled(shape, 0, dtype, at); }
Tensor ones(const Shape& shape, DType dtype, Here at) { return filled(shape, 1, dtype, at); }

// A number is read as the dtype wanted, as beside a tensor of it; a float for integers as f64, so
// that the whole part is exact.
Tensor full(const Shape& shape, const Operand& value, std::optional<DType> dtype) {
  const bool truncated = dtype && is_integer(*dtype) && value.kind == Operand::Kind::kFloat;
  const Call call("full", {&value}, truncated ? f64 : dtype);
  const ir::Value one = dtype ? ops::cast(call[0], *dtype, call.location()) : call[0];
  return call.result(ops::broadcast_to(one, shape, call.location()));
}

Tensor arange(const Dim& stop, DType dtype, Here at) {
  return wrap(ops::arange(stop, dtype, location_of(at)));
}

Tensor arange(int64_t start, int64_t stop, int64_t step, DType dtype, Here at) {
  return wrap(ops::arange(start, stop, step, dtype, location_of(at)));
}

Tensor eye(const Dim& rows, std::optional<Dim> columns, int64_t k, DType dtype, Here at) {
  return wrap(ops::eye(rows, columns.value_or(rows), k, dtype, location_of(at)));
}

Tensor tri(const Dim& rows, std::optional<Dim> columns, int64_t k, DType dtype, Here at) {
  return wrap(ops::tri(rows, columns.value_or(rows), k, dtype, location_of(at)));
}

Tensor iota(const Shape& shape, int64_t axis, DType dtype, Here at) {
  return wrap(ops::iota(shape, axis, dtype, location_of(at)));
}

Tensor one_hot(const Operand& indices, const Dim& count, DType dtype) {
  const Call call("one_hot", {&indices});
  return call.result(ops::one_hot(call[0], count, dtype, -1, call.location()));
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

Tensor cumprod(const Operand& x, int64_t axis) {
  const Call call("cumprod", {&x});
  return call.result(ops::cumprod(call[0], axis, false, false, call.location()));
}

Tensor cummax(const Operand& x, int64_t axis) {
  const Call call("cummax", {&x});
  return call.result(ops::cummax(call[0], axis, false, false, call.location()));
}

Tensor cummin(const Operand& x, int64_t axis) {
  const Call call("cummin", {&x});
  return call.result(ops::cummin(call[0], axis, false, false, call.location()));
}

// --- order ---

Tensor sort(const Operand& x, int64_t axis, bool descending) {
  const Call call("sort", {&x});
  return call.result(ops::sort(call[0], axis, descending, call.location()));
}

Tensor argsort(const Operand& x, int64_t axis, bool descending) {
  const Call call("argsort", {&x});
  return call.result(ops::argsort(call[0], axis, descending, call.location()));
}

std::pair<Tensor, Tensor> top_k(const Operand& x, int64_t k, int64_t axis, bool largest) {
  const Call call("top_k", {&x});
  const ops::TopK top = ops::top_k(call[0], k, axis, largest, call.location());
  return {call.result(top.values), call.result(top.indices)};
}

// --- products ---

Tensor matmul(const Operand& x, const Operand& y) {
  const Call call("matmul", {&x, &y});
  return call.result(ops::matmul(call[0], call[1], call.location()));
}

Tensor matmul(const Operand& x, const Operand& y, DType dtype) {
  const Call call("matmul", {&x, &y});
  return call.result(ops::matmul(ops::cast(call[0], dtype, call.location()),
                                 ops::cast(call[1], dtype, call.location()), call.location()));
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

Tensor scatter(const Operand& x, const Operand& indices, const Operand& updates, int64_t axis,
               const std::string& mode) {
  const Call call("scatter", {&x, &updates});
  const Call where("scatter", {&indices});
  return call.result(ops::scatter(call[0], where[0], call[1], axis, mode, call.location()));
}

Tensor put_along_axis(const Operand& x, const Operand& indices, const Operand& updates,
                      int64_t axis, const std::string& mode) {
  const Call call("put_along_axis", {&x, &updates});
  const Call where("put_along_axis", {&indices});
  return call.result(ops::put_along_axis(call[0], where[0], call[1], axis, mode, call.location()));
}

}  // namespace tenon
