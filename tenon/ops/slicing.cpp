// slice, dynamic_slice, slice_update: windows with steps. The functions of ops.h resolve Python's
// bounds; the ops hold first elements, sizes and steps.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/copy.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Op;
using kir::Pred;
using kir::Val;

namespace {

// --- slice {start, size, step} ---
//
// slice_c1: start, size and step have one entry an axis, and no step is 0. slice_c2: where all are
// numbers, every element lies inside the operand.

void check_window(std::string_view op, const Shape& shape, const Shape& start, const Shape& size,
                  const std::vector<int64_t>& step) {
  if (start.size() != shape.size() || size.size() != shape.size() || step.size() != shape.size() ||
      std::find(step.begin(), step.end(), 0) != step.end()) {
    throw ValueError(fmt::format("{}: start, size and step need one entry for each of {} axes, and "
                                 "no step may be 0",
                                 op, shape.size()),
                     {.label = fmt::format("{}_c1", op)});
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_static() || !start[i].is_static() || !size[i].is_static()) continue;
    const int64_t n = size[i].value();
    const int64_t first = start[i].value();
    const int64_t last = first + (n - 1) * step[i];
    const int64_t dim = shape[i].value();
    if (n == 0 || (n > 0 && first >= 0 && first < dim && last >= 0 && last < dim)) continue;
    throw ValueError(fmt::format("{}: {} elements from {} by {} leave axis {} of {}", op, n, first,
                                 step[i], i, str(shape)),
                     {.label = fmt::format("{}_c2", op)});
  }
}

std::vector<TensorType> slice_infer(const ir::InferArgs& args) {
  check_window(args.op, args.in[0].shape, args.attrs.shape("start"), args.attrs.shape("size"),
               args.attrs.ints("step"));
  return {{args.in[0].dtype, args.attrs.shape("size")}};
}

std::vector<Literal> slice_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  std::vector<int64_t> strides = contiguous_strides(x.dims());
  const auto& step = args.attrs.ints("step");
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    first += args.attrs.shape("start")[i].value() * strides[i];
    strides[i] *= step[i];
  }
  return {copy_strided(x, first, strides, args.out[0])};
}

Val slice_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Shape& start = node.attrs.shape("start");
  const auto& step = node.attrs.ints("step");
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(b.add(b.dim(start[i]), b.mul(index[i], b.i64(step[i]))));
  }
  return ctx.element(node.operands[0], at);
}

ir::Attrs window(Shape start, Shape size, std::vector<int64_t> step) {
  return {{"start", std::move(start)}, {"size", std::move(size)}, {"step", std::move(step)}};
}

std::vector<ir::Sample> slice_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back({.in = {{d, {6, 7}}}, .attrs = window({1, 6}, {3, 4}, {2, -2})});
    samples.push_back({.in = {{d, {"n", 5}}}, .attrs = window({0, 2}, {"n", 3}, {1, 1})});
    samples.push_back({.in = {{d, {4}}}, .attrs = window({4}, {0}, {1})});
  }
  return samples;
}

// --- run-time starts: shared by dynamic_slice and slice_update ---
//
// <op>_starts: one 0-d i64 operand for each axis of `axes`.

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

int64_t clamp_start(int64_t start, int64_t dim, int64_t extent) {
  return std::max<int64_t>(0, std::min(start, dim - extent));
}

// The first element of a window of `size` by `step` in `dims`: static starts, or clamped operands.
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

// --- dynamic_slice(x, starts …) {start, size, axes} ---
//
// dynamic_slice_c1: size has one entry an axis and is not known to exceed x's.

std::vector<TensorType> dynamic_slice_infer(const ir::InferArgs& args) {
  const Shape& shape = args.in[0].shape;
  const Shape& size = args.attrs.shape("size");
  check_starts(args.op, args.in.subspan(1), args.attrs.ints("axes"), shape.size());
  bool right = size.size() == shape.size() && args.attrs.shape("start").size() == shape.size();
  for (size_t i = 0; right && i < size.size(); ++i) {
    right = !Dim::less(shape[i], size[i]).value_or(false);
  }
  if (!right) {
    throw ValueError(
        fmt::format("dynamic_slice: a window of {} does not fit into {}", str(size), str(shape)),
        {.label = "dynamic_slice_c1"});
  }
  return {{args.in[0].dtype, size}};
}

std::vector<Literal> dynamic_slice_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const auto& size = args.out[0].dims;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] <= x.dims()[i]) continue;
    throw ValueError(fmt::format("dynamic_slice: a window of {} does not fit into axis {} of {}",
                                 size[i], i, describe(x.dtype(), x.dims())),
                     {.label = "dynamic_slice_c1"});
  }
  const std::vector<int64_t> ones(size.size(), 1);
  const auto start = resolve_starts(args.attrs.shape("start"), args.in.subspan(1),
                                    args.attrs.ints("axes"), x.dims(), size, ones);
  const std::vector<int64_t> strides = contiguous_strides(x.dims());
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) first += start[i] * strides[i];
  return {copy_strided(x, first, strides, args.out[0])};
}

Val dynamic_slice_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                        std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const std::vector<int64_t> ones(index.size(), 1);
  Index at = emit_starts(ctx, node, 1, x.shape(), node.types[0].shape, ones);
  for (size_t i = 0; i < at.size(); ++i) at[i] = b.add(at[i], index[i]);
  return ctx.element(x, at);
}

std::vector<ir::Sample> dynamic_slice_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back({.in = {{d, {6, 7}}, {DType::kI64, {}}},
                       .attrs = {{"start", Shape{0, 0}},
                                 {"size", Shape{2, 7}},
                                 {"axes", std::vector<int64_t>{0}}},
                       .lo = -8,
                       .hi = 8});
  }
  samples.push_back({.in = {{DType::kF32, {"n", 4}}, {DType::kI64, {}}, {DType::kI64, {}}},
                     .attrs = {{"start", Shape{0, 0}},
                               {"size", Shape{1, 3}},
                               {"axes", std::vector<int64_t>{0, 1}}},
                     .lo = -8,
                     .hi = 8});
  return samples;
}

// --- slice_update(x, update, starts …) {start, step, axes} ---
//
// slice_update_c1: update has x's dtype and rank; start and step one entry an axis, steps positive.
// slice_update_c2: where all are numbers, the window lies inside x.

std::vector<TensorType> slice_update_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  const TensorType& update = args.in[1];
  const Shape& start = args.attrs.shape("start");
  const auto& step = args.attrs.ints("step");
  const auto& axes = args.attrs.ints("axes");
  check_starts(args.op, args.in.subspan(2), axes, x.rank());
  const bool steps_up = std::all_of(step.begin(), step.end(), [](int64_t s) { return s > 0; });
  if (x.dtype != update.dtype || x.rank() != update.rank() || start.size() != x.rank() ||
      step.size() != x.rank() || !steps_up) {
    throw ShapeError(
        "slice_update: update must have the operand's dtype and rank, start and step "
        "one entry an axis, and steps must be positive",
        {.label = "slice_update_c1", .details = operand_types(args.in.first(2))});
  }
  for (size_t i = 0; i < x.rank(); ++i) {
    if (update.shape[i] == Dim(0)) continue;
    const Dim extent = (update.shape[i] - 1) * step[i] + 1;
    const bool dynamic = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    const Dim end = dynamic ? extent : start[i] + extent;
    if (!Dim::less(x.shape[i], end).value_or(false)) continue;
    throw ShapeError(
        fmt::format("slice_update: update reaches {} on axis {} of {}", end.str(), i, str(x.shape)),
        {.label = "slice_update_c2", .details = operand_types(args.in.first(2))});
  }
  return {x};
}

std::vector<Literal> slice_update_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const Literal& update = args.in[1];
  const auto& step = args.attrs.ints("step");
  Literal result = clone(x);
  const auto start = resolve_starts(args.attrs.shape("start"), args.in.subspan(2),
                                    args.attrs.ints("axes"), x.dims(), update.dims(), step);
  std::vector<int64_t> strides = contiguous_strides(x.dims());
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t n = update.dims()[i];
    if (n > 0 && (start[i] < 0 || start[i] + (n - 1) * step[i] >= x.dims()[i])) {
      throw ShapeError(fmt::format("slice_update: {} elements from {} leave axis {} of {}", n,
                                   start[i], i, describe(x.dtype(), x.dims())),
                       {.label = "slice_update_c2"});
    }
    first += start[i] * strides[i];
    strides[i] *= step[i];
  }
  write_strided(update, result, first, strides);
  return {std::move(result)};
}

// The update's element inside the window, the operand's elsewhere.
Val slice_update_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                       std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Value& update = node.operands[1];
  const auto& step = node.attrs.ints("step");
  const Index start = emit_starts(ctx, node, 2, x.shape(), update.shape(), step);
  Val inside = b.boolean(true);
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    const Val offset = b.sub(index[i], start[i]);
    const Val extent = b.dim(update.shape()[i] * step[i]);
    inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kSGe, offset, b.i64(0)));
    inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kSLt, offset, extent));
    if (step[i] == 1) {
      at.push_back(offset);
      continue;
    }
    // Outside the window the division would see a negative offset.
    const Val safe = b.binary(Op::kSMax, offset, b.i64(0));
    inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kEq, b.index_rem(safe, step[i]), b.i64(0)));
    at.push_back(b.index_div(safe, step[i]));
  }
  const Val fresh = ctx.element_if(update, at, inside);
  const Val old = ctx.element_if(x, index, b.logical_not(inside));
  return b.select(inside, fresh, old);
}

std::vector<ir::Sample> slice_update_samples() {
  std::vector<ir::Sample> samples;
  const auto attrs = [](Shape start, std::vector<int64_t> step, std::vector<int64_t> axes) {
    return ir::Attrs{
        {"start", std::move(start)}, {"step", std::move(step)}, {"axes", std::move(axes)}};
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back({.in = {{d, {6, 7}}, {d, {2, 3}}}, .attrs = attrs({1, 0}, {3, 2}, {})});
    samples.push_back({.in = {{d, {6, 4}}, {d, {2, 4}}, {DType::kI64, {}}},
                       .attrs = attrs({0, 0}, {1, 1}, {0}),
                       .lo = -8,
                       .hi = 8});
  }
  samples.push_back({.in = {{DType::kF32, {"n", 4}}, {DType::kF32, {1, 4}}, {DType::kI64, {}}},
                     .attrs = attrs({0, 0}, {1, 1}, {0}),
                     .lo = -8,
                     .hi = 8});
  samples.push_back(
      {.in = {{DType::kF32, {3, 4}}, {DType::kF32, {0, 4}}}, .attrs = attrs({0, 0}, {1, 1}, {})});
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef slice{
    .name = "slice",
    .doc = "`size` elements from `start` by `step` (which may be negative) along every axis.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"start", Shape{}, true},
              {"size", Shape{}, true},
              {"step", std::vector<int64_t>{}, true}},
    .infer = slice_infer,
    .eval = slice_eval,
    .lower = slice_lower,
    .samples = slice_samples,
};

const ir::OpDef dynamic_slice{
    .name = "dynamic_slice",
    .doc =
        "A window whose start on `axes` is given by 0-d i64 operands, clamped so that the "
        "window is whole.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = -1,
    .attrs = {{"start", Shape{}, true},
              {"size", Shape{}, true},
              {"axes", std::vector<int64_t>{}, true}},
    .infer = dynamic_slice_infer,
    .eval = dynamic_slice_eval,
    .lower = dynamic_slice_lower,
    .samples = dynamic_slice_samples,
};

const ir::OpDef slice_update{
    .name = "slice_update",
    .doc =
        "The operand with a window by positive steps replaced; starts on `axes` are 0-d i64 "
        "operands, clamped so that the window is whole.",
    .traits = ir::kAnchor,
    .min_operands = 2,
    .max_operands = -1,
    .attrs = {{"start", Shape{}, true},
              {"step", std::vector<int64_t>{}, true},
              {"axes", std::vector<int64_t>{}}},
    .infer = slice_update_infer,
    .eval = slice_update_eval,
    .lower = slice_update_lower,
    .samples = slice_update_samples,
};

}  // namespace op

std::vector<const ir::OpDef*> slicing_ops() {
  return {&op::slice, &op::dynamic_slice, &op::slice_update};
}

namespace {

bool certainly_negative(const Dim& d) { return Dim::less(d, 0).value_or(false); }

// A bound as Python reads it: from the end when negative, then clamped to lo … hi.
Dim resolve_bound(const Dim& bound, const Dim& dim, const Dim& lo, const Dim& hi) {
  const Dim from_start = certainly_negative(bound) ? bound + dim : bound;
  return dim_min(dim_max(from_start, lo), hi);
}

struct Range {
  Dim start;
  Dim size;
};

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

Value make_slice(const Value& x, Shape start, Shape size, std::vector<int64_t> step,
                 LocationPtr location) {
  const bool plain = std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 1; });
  if (plain && size == x.shape()) return x;
  return ir::make(op::slice, {x}, window(std::move(start), std::move(size), std::move(step)),
                  std::move(location));
}

}  // namespace

Value slice(const Value& x, std::span<const SliceBound> bounds, LocationPtr location) {
  Shape start(x.shape().size(), Dim(0));
  Shape size = x.shape();
  std::vector<int64_t> step(x.shape().size(), 1);
  with_location(location, [&] {
    if (bounds.size() > size.size()) {
      throw IndexError(fmt::format("slice: {} bounds for {}", bounds.size(), ir::brief(x.type())),
                       {.label = "slice_c3"});
    }
    for (size_t i = 0; i < bounds.size(); ++i) {
      const Range range = resolve_range(bounds[i], x.shape()[i]);
      start[i] = range.start;
      size[i] = range.size;
      step[i] = bounds[i].step;
    }
  });
  return make_slice(x, std::move(start), std::move(size), std::move(step), std::move(location));
}

Value slice_axis(const Value& x, int64_t axis, const SliceBound& bound, LocationPtr location) {
  std::vector<SliceBound> bounds;
  with_location(location, [&] {
    bounds.resize(static_cast<size_t>(normalize_axis("slice", axis, x.shape().size())) + 1);
  });
  bounds.back() = bound;
  return slice(x, bounds, std::move(location));
}

Value index(const Value& x, int64_t axis, const Dim& i, LocationPtr location) {
  Shape start(x.shape().size(), Dim(0));
  Shape size = x.shape();
  with_location(location, [&] {
    axis = normalize_axis("index", axis, x.shape().size());
    const auto a = static_cast<size_t>(axis);
    const Dim& dim = x.shape()[a];
    start[a] = certainly_negative(i) ? i + dim : i;
    size[a] = 1;
    const bool outside =
        certainly_negative(start[a]) || Dim::less(dim, start[a] + 1).value_or(false);
    if (outside) {
      throw IndexError(
          fmt::format("index: {} is outside axis {} of {}", i.str(), axis, ir::brief(x.type())),
          {.label = "index_c1"});
    }
  });
  std::vector<int64_t> step(size.size(), 1);
  return squeeze(make_slice(x, std::move(start), std::move(size), std::move(step), location),
                 std::vector<int64_t>{axis}, location);
}

Value dynamic_slice(const Value& x, std::vector<Value> starts, std::vector<int64_t> axes,
                    const Shape& sizes, LocationPtr location) {
  const size_t rank = x.shape().size();
  axes = from_front(std::move(axes), rank);
  Shape size = x.shape();
  for (int64_t axis : axes) {
    const auto a = static_cast<size_t>(axis);
    if (a < rank && a < sizes.size()) size[a] = sizes[a];
  }
  std::vector<Value> operands = as_i64(std::move(starts), location);
  operands.insert(operands.begin(), x);
  return ir::make(op::dynamic_slice, std::move(operands),
                  {{"start", Shape(rank, Dim(0))}, {"size", size}, {"axes", std::move(axes)}},
                  std::move(location));
}

Value slice_update(const Value& x, const Value& update, std::span<const SliceBound> bounds,
                   LocationPtr location) {
  Shape start(x.shape().size(), Dim(0));
  Shape size = x.shape();
  std::vector<int64_t> step(x.shape().size(), 1);
  std::vector<int64_t> backwards;
  with_location(location, [&] {
    if (bounds.size() > size.size()) {
      throw IndexError(
          fmt::format("slice_update: {} bounds for {}", bounds.size(), ir::brief(x.type())),
          {.label = "slice_c3"});
    }
    for (size_t i = 0; i < bounds.size(); ++i) {
      const Range range = resolve_range(bounds[i], x.shape()[i]);
      const int64_t by = bounds[i].step;
      size[i] = range.size;
      step[i] = by < 0 ? -by : by;
      start[i] = by < 0 ? dim_max(range.start + (range.size - 1) * by, 0) : range.start;
      if (by < 0) backwards.push_back(static_cast<int64_t>(i));
    }
  });
  Value value = broadcast_to(cast(update, x.dtype(), location), size, location);
  if (!backwards.empty()) value = flip(value, backwards, location);
  return ir::make(
      op::slice_update, {x, value},
      {{"start", std::move(start)}, {"step", std::move(step)}, {"axes", std::vector<int64_t>{}}},
      std::move(location));
}

Value dynamic_slice_update(const Value& x, const Value& update, std::vector<Value> starts,
                           std::vector<int64_t> axes, LocationPtr location) {
  const size_t rank = x.shape().size();
  std::vector<Value> operands = as_i64(std::move(starts), location);
  operands.insert(operands.begin(), {x, cast(update, x.dtype(), location)});
  return ir::make(op::slice_update, std::move(operands),
                  {{"start", Shape(rank, Dim(0))},
                   {"step", std::vector<int64_t>(rank, 1)},
                   {"axes", from_front(std::move(axes), rank)}},
                  std::move(location));
}

Value flip(const Value& x, const Axes& axes, LocationPtr location) {
  std::vector<SliceBound> bounds(x.shape().size());
  with_location(location, [&] {
    for (size_t i = 0; !axes && i < bounds.size(); ++i) bounds[i].step = -1;
    if (!axes) return;
    for (int64_t axis : normalize_axes("flip", *axes, bounds.size())) {
      bounds[static_cast<size_t>(axis)].step = -1;
    }
  });
  return slice(x, bounds, std::move(location));
}

}  // namespace tenon::ops
