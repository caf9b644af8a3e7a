// slice and dynamic_slice: windows read with steps; index and flip are slices.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/copy.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/window.h"

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
};
TENON_OP_SAMPLES(slice, slice_samples)

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
};
TENON_OP_SAMPLES(dynamic_slice, dynamic_slice_samples)

}  // namespace op

std::vector<const ir::OpDef*> slicing_ops() { return {&op::slice, &op::dynamic_slice}; }

namespace {

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
