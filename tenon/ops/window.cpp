#include "tenon/ops/window.h"

#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/ops.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Op;
using kir::Val;

bool certainly_negative(const Dim& d) { return Dim::less(d, 0).value_or(false); }

namespace {

// A bound as Python reads it: from the end when negative, then clamped to lo … hi.
Dim resolve_bound(const Dim& bound, const Dim& dim, const Dim& lo, const Dim& hi) {
  const Dim from_start = certainly_negative(bound) ? bound + dim : bound;
  return dim_min(dim_max(from_start, lo), hi);
}

}  // namespace

Range resolve_range(const SliceBound& bound, const Dim& dim) {
  if (bound.step == 0) {
    throw ValueError("slice: step must not be 0", {.label = "slice_c1"});
  }
  if (bound.step > 0) {
    const Dim start = bound.start ? resolve_bound(*bound.start, dim, 0, dim) : Dim(0);
    const Dim stop = bound.stop ? resolve_bound(*bound.stop, dim, 0, dim) : dim;
    return {start, floor_div(dim_max(stop - start, 0) + (bound.step - 1), bound.step)};
  }
  const Dim last = dim - 1;
  const Dim start = bound.start ? resolve_bound(*bound.start, dim, -1, last) : last;
  const Dim stop = bound.stop ? resolve_bound(*bound.stop, dim, -1, last) : Dim(-1);
  return {start, floor_div(dim_max(start - stop, 0) + (-bound.step - 1), -bound.step)};
}

void check_starts(std::string_view op, std::span<const TensorType> starts,
                  const std::vector<int64_t>& axes, size_t rank) {
  normalize_axes(op, axes, rank);
  bool right = starts.size() == axes.size();
  for (const TensorType& s : starts) right = right && s.dtype == DType::kI64 && s.shape.empty();
  if (right) return;
  throw TypeError(fmt::format("{}: needs one 0-d i64 start for each of {} axes, got {} operands "
                              "({})",
                              op, axes.size(), starts.size(), operand_types(starts)),
                  {.label = fmt::format("{}_starts", op)});
}

namespace {

int64_t clamp_start(int64_t start, int64_t dim, int64_t extent) {
  return std::max<int64_t>(0, std::min(start, dim - extent));
}

}  // namespace

std::vector<int64_t> resolve_starts(const Shape& start, std::span<const Literal> operands,
                                    const std::vector<int64_t>& axes, std::span<const int64_t> dims,
                                    std::span<const int64_t> size, std::span<const int64_t> step) {
  std::vector<int64_t> first;
  for (const Dim& d : start) first.push_back(d.value());
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const int64_t extent = size[axis] == 0 ? 0 : (size[axis] - 1) * step[axis] + 1;
    first[axis] = clamp_start(*operands[k].as<int64_t>(), dims[axis], extent);
  }
  return first;
}

Index emit_starts(LowerContext& ctx, const ir::Node& node, size_t first_operand, const Shape& dims,
                  const Shape& size, const std::vector<int64_t>& step) {
  kir::Builder& b = ctx.builder();
  Index first;
  for (const Dim& d : node.attrs.shape("start")) first.push_back(b.dim(d));
  const auto& axes = node.attrs.ints("axes");
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const Val wanted = ctx.element(node.operands[first_operand + k], {});
    const Dim room = dims[axis] - ((size[axis] - 1) * step[axis] + 1);
    const Val capped = b.binary(Op::kSMin, wanted, b.dim(room));
    first[axis] = b.binary(Op::kSMax, capped, b.i64(0));
  }
  return first;
}

std::vector<Value> as_i64(std::vector<Value> starts, const LocationPtr& location) {
  for (Value& s : starts) s = cast(s, DType::kI64, location);
  return starts;
}

std::vector<int64_t> from_front(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
  }
  return axes;
}

}  // namespace tenon::ops
