// transpose and broadcast_to: every result element is an operand element.
#include <algorithm>
#include <numeric>

#include "tenon/ops/checks.h"
#include "tenon/ops/copy.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/samples.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// --- transpose {perm} ---
// transpose_c1: perm names every axis once.

std::vector<TensorType> transpose_infer(const ir::InferArgs& args) {
  const Shape& shape = args.in[0].shape;
  const auto& perm = args.attrs.ints("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool right = sorted.size() == shape.size();
  for (size_t i = 0; right && i < sorted.size(); ++i) right = sorted[i] == static_cast<int64_t>(i);
  if (!right) {
    throw ValueError(fmt::format("transpose: perm [{}] must name each of the {} axes of {} once",
                                 fmt::join(perm, ", "), shape.size(), str(shape)),
                     {.label = "transpose_c1"});
  }
  Shape result;
  for (int64_t axis : perm) result.push_back(shape[static_cast<size_t>(axis)]);
  return {{args.in[0].dtype, result}};
}

std::vector<Literal> transpose_eval(const ir::EvalArgs& args) {
  const std::vector<int64_t> from = contiguous_strides(args.in[0].dims());
  std::vector<int64_t> strides;
  for (int64_t axis : args.attrs.ints("perm")) strides.push_back(from[static_cast<size_t>(axis)]);
  return {copy_strided(args.in[0], 0, strides, args.out[0])};
}

Val transpose_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  const auto& perm = node.attrs.ints("perm");
  Index at(index.size());
  for (size_t i = 0; i < perm.size(); ++i) at[static_cast<size_t>(perm[i])] = index[i];
  return ctx.element(node.operands[0], at);
}

std::vector<ir::Sample> transpose_samples() {
  return for_all_dtypes([](std::vector<ir::Sample>& to, DType d) {
    to.push_back({.in = {{d, {4, 6}}}, .attrs = {{"perm", std::vector<int64_t>{1, 0}}}});
    to.push_back({.in = {{d, {"n", 3, 2}}}, .attrs = {{"perm", std::vector<int64_t>{2, 0, 1}}}});
    to.push_back({.in = {{d, {}}}, .attrs = {{"perm", std::vector<int64_t>{}}}});
  });
}

// --- broadcast_to {shape} ---
// broadcast_to_c1: right-aligned, every dimension of x is 1 or that of the shape.

std::vector<TensorType> broadcast_to_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  const Shape& shape = args.attrs.shape("shape");
  bool right = x.rank() <= shape.size();
  for (size_t k = 0; right && k < x.rank(); ++k) {
    const Dim& from = x.shape[x.rank() - 1 - k];
    const Dim& to = shape[shape.size() - 1 - k];
    right = (from.is_static() && from.value() == 1) || same_dim(from, to);
  }
  if (!right) {
    throw ShapeError(
        fmt::format("broadcast_to: {} does not broadcast to {}", str(x.shape), str(shape)),
        {.label = "broadcast_to_c1"});
  }
  return {{x.dtype, shape}};
}

std::vector<Literal> broadcast_to_eval(const ir::EvalArgs& args) {
  const auto strides = broadcast_strides(args.in[0].dims(), args.out[0].dims);
  return {copy_strided(args.in[0], 0, strides, args.out[0])};
}

Val broadcast_to_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                       std::span<const Val> index) {
  const Value& x = node.operands[0];
  return ctx.element(x, broadcast_index(ctx.builder(), x.shape(), node.types[0].shape, index));
}

std::vector<ir::Sample> broadcast_to_samples() {
  return for_all_dtypes([](std::vector<ir::Sample>& to, DType d) {
    to.push_back({.in = {{d, {3, 1}}}, .attrs = {{"shape", Shape{2, 3, 5}}}});
    to.push_back({.in = {{d, {}}}, .attrs = {{"shape", Shape{"n", 2}}}});
    to.push_back({.in = {{d, {1}}}, .attrs = {{"shape", Shape{0}}}});
  });
}

}  // namespace

namespace op {

const ir::OpDef transpose{
    .name = "transpose",
    .doc = "Result axis i is operand axis perm[i].",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"perm", std::vector<int64_t>{}, true}},
    .infer = transpose_infer,
    .eval = transpose_eval,
    .lower = transpose_lower,
};
TENON_OP_SAMPLES(transpose, transpose_samples)

const ir::OpDef broadcast_to{
    .name = "broadcast_to",
    .doc = "The operand repeated along new axes on the left and axes of 1.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"shape", Shape{}, true}},
    .infer = broadcast_to_infer,
    .eval = broadcast_to_eval,
    .lower = broadcast_to_lower,
};
TENON_OP_SAMPLES(broadcast_to, broadcast_to_samples)

}  // namespace op

std::vector<const ir::OpDef*> movement_ops() { return {&op::transpose, &op::broadcast_to}; }

Value transpose(const Value& x, const Axes& perm, LocationPtr location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  std::vector<int64_t> order;
  if (perm) {
    for (int64_t axis : *perm) order.push_back(axis < 0 && axis >= -rank ? axis + rank : axis);
  } else {
    for (int64_t i = rank; i-- > 0;) order.push_back(i);
  }
  bool identity = static_cast<int64_t>(order.size()) == rank;
  for (size_t i = 0; identity && i < order.size(); ++i) {
    identity = order[i] == static_cast<int64_t>(i);
  }
  if (identity) return x;
  return ir::make(op::transpose, {x}, {{"perm", std::move(order)}}, std::move(location));
}

Value swap_axes(const Value& x, int64_t a, int64_t b, LocationPtr location) {
  const size_t rank = x.shape().size();
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  with_location(location, [&] {
    a = normalize_axis("swap_axes", a, rank);
    b = normalize_axis("swap_axes", b, rank);
  });
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return transpose(x, order, std::move(location));
}

Value broadcast_to(const Value& x, Shape shape, LocationPtr location) {
  if (shape == x.shape()) return x;
  return ir::make(op::broadcast_to, {x}, {{"shape", std::move(shape)}}, std::move(location));
}

}  // namespace tenon::ops
