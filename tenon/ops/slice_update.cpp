// slice_update: a tensor with a window of it replaced.
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
};
TENON_OP_SAMPLES(slice_update, slice_update_samples)

}  // namespace op

std::vector<const ir::OpDef*> slice_update_ops() { return {&op::slice_update}; }

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

}  // namespace tenon::ops
