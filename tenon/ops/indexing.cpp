// take and take_along_axis: elements at positions given by a tensor. For a position outside,
// kernels read a clamped one before the error is raised.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/copy.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/position.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// --- take(x, indices) {axis} ---
//
// take_c1: indices are integers. take_c2: an axis without elements takes no indices.

std::vector<TensorType> take_infer(const ir::InferArgs& args) {
  const Shape& x = args.in[0].shape;
  const Shape& indices = args.in[1].shape;
  check_indices(args.op, args.in[1]);
  const auto axis = static_cast<size_t>(normalize_axis(args.op, args.attrs.i("axis"), x.size()));
  check_has_elements(args.op, x, axis, product(indices));
  Shape shape(x.begin(), x.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + static_cast<int64_t>(axis) + 1, x.end());
  return {{args.in[0].dtype, shape}};
}

std::vector<Literal> take_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const Literal& indices = args.in[1];
  Literal result(args.out[0].dtype, args.out[0].dims);
  const int64_t axis = normalize_axis("take", args.attrs.i("axis"), x.rank());
  const int64_t dim = x.dims()[static_cast<size_t>(axis)];
  const auto inner = static_cast<size_t>(contiguous_strides(x.dims())[static_cast<size_t>(axis)]);
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= x.dims()[static_cast<size_t>(i)];
  const size_t block = inner * size_of(x.dtype());
  if (result.count() == 0) return {std::move(result)};
  std::byte* to = result.mutable_data();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < indices.count(); ++k) {
      const int64_t i = position_in("take", indices, k, dim, axis);
      std::memcpy(to, x.data() + static_cast<size_t>(o * dim + i) * block, block);
      to += block;
    }
  }
  return {std::move(result)};
}

Val take_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  const Value& x = node.operands[0];
  const Value& indices = node.operands[1];
  const auto axis =
      static_cast<size_t>(normalize_axis("take", node.attrs.i("axis"), x.shape().size()));
  const size_t taken = indices.shape().size();
  const Val raw = ctx.element(indices, index.subspan(axis, taken));
  Index at(index.begin(), index.begin() + static_cast<int64_t>(axis));
  at.push_back(emit_position(ctx.builder(), raw, indices.dtype(), x.shape()[axis]).at);
  at.insert(at.end(), index.begin() + static_cast<int64_t>(axis + taken), index.end());
  return ctx.element(x, at);
}

std::vector<ir::Sample> take_samples() {
  std::vector<ir::Sample> samples;
  const auto add = [&](DType d, Shape x, DType i, Shape indices, int64_t axis) {
    samples.push_back({.in = {{d, std::move(x)}, {i, std::move(indices)}},
                       .attrs = {{"axis", axis}},
                       .lo = 0,
                       .hi = 3});
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    add(d, {4, 5}, DType::kI64, {2, 3}, 0);
    if (is_integer(d)) add(DType::kF32, {2, 4, 3}, d, {6}, 1);
  }
  add(DType::kF32, {5, "n"}, DType::kI32, {"m"}, 0);
  add(DType::kF32, {4}, DType::kI64, {}, 0);
  add(DType::kF32, {4, 2}, DType::kI64, {0}, 0);
  return samples;
}

// --- take_along_axis(x, indices) {axis} ---
//
// take_along_axis_c1: indices are integers. take_along_axis_c2: the ranks are equal; outside the
// axis the shapes broadcast.

std::vector<TensorType> take_along_axis_infer(const ir::InferArgs& args) {
  const Shape& x = args.in[0].shape;
  const Shape& indices = args.in[1].shape;
  check_indices(args.op, args.in[1]);
  if (x.size() != indices.size()) {
    throw ShapeError("take_along_axis: operand and indices must have one rank",
                     {.label = "take_along_axis_c2", .details = operand_types(args.in)});
  }
  const auto axis = static_cast<size_t>(normalize_axis(args.op, args.attrs.i("axis"), x.size()));
  Shape rest_x = x;
  Shape rest_i = indices;
  rest_x[axis] = rest_i[axis] = 1;
  Shape shape = broadcast_shapes(args.op, {rest_x, rest_i});
  shape[axis] = indices[axis];
  return {{args.in[0].dtype, shape}};
}

std::vector<Literal> take_along_axis_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const Literal& indices = args.in[1];
  const auto& dims = args.out[0].dims;
  Literal result(args.out[0].dtype, dims);
  const int64_t axis = normalize_axis("take_along_axis", args.attrs.i("axis"), x.rank());
  const auto a = static_cast<size_t>(axis);
  const int64_t dim = x.dims()[a];
  const int64_t stride = contiguous_strides(x.dims())[a];
  std::vector<int64_t> x_strides = contiguous_strides(x.dims());
  for (size_t i = 0; i < x_strides.size(); ++i) {
    if (i == a || x.dims()[i] == 1) x_strides[i] = 0;
  }
  std::vector<int64_t> i_strides = broadcast_strides(indices.dims(), dims);
  const size_t bytes = size_of(x.dtype());
  for_each_run(dims, {x_strides, i_strides}, [&](const Run& run) {
    for (int64_t k = 0; k < run.count; ++k) {
      const int64_t at = run.at[1] + k * run.step[1];
      const int64_t i = position_in("take_along_axis", indices, at, dim, axis);
      const int64_t from = run.at[0] + k * run.step[0] + i * stride;
      std::memcpy(result.mutable_data() + static_cast<size_t>(run.first + k) * bytes,
                  x.data() + static_cast<size_t>(from) * bytes, bytes);
    }
  });
  return {std::move(result)};
}

Val take_along_axis_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                          std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Value& indices = node.operands[1];
  const Shape& result = node.types[0].shape;
  const auto axis = static_cast<size_t>(
      normalize_axis("take_along_axis", node.attrs.i("axis"), x.shape().size()));
  const Val raw = ctx.element(indices, broadcast_index(b, indices.shape(), result, index));
  Index at = broadcast_index(b, x.shape(), result, index);
  at[axis] = emit_position(b, raw, indices.dtype(), x.shape()[axis]).at;
  return ctx.element(x, at);
}

std::vector<ir::Sample> take_along_axis_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back({.in = {{d, {4, 5}}, {DType::kI64, {2, 5}}},
                       .attrs = {{"axis", int64_t{0}}},
                       .lo = 0,
                       .hi = 3});
  }
  samples.push_back({.in = {{DType::kF32, {"n", 4}}, {DType::kI32, {1, 6}}},
                     .attrs = {{"axis", int64_t{1}}},
                     .lo = 0,
                     .hi = 3});
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef take{
    .name = "take",
    .doc =
        "The operand's slices at the given positions of an axis; negative ones count from the "
        "end, others outside are an IndexError.",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"axis", int64_t{0}}},
    .infer = take_infer,
    .eval = take_eval,
    .lower = take_lower,
};
TENON_OP_SAMPLES(take, take_samples)

const ir::OpDef take_along_axis{
    .name = "take_along_axis",
    .doc = "Along an axis, the elements at the positions that a tensor of the same rank gives.",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"axis", int64_t{0}}},
    .infer = take_along_axis_infer,
    .eval = take_along_axis_eval,
    .lower = take_along_axis_lower,
};
TENON_OP_SAMPLES(take_along_axis, take_along_axis_samples)

}  // namespace op

std::vector<const ir::OpDef*> indexing_ops() { return {&op::take, &op::take_along_axis}; }

Value take(const Value& x, const Value& indices, int64_t axis, LocationPtr location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis < 0 && axis >= -rank) axis += rank;
  return ir::make(op::take, {x, indices}, {{"axis", axis}}, std::move(location));
}

Value take_along_axis(const Value& x, const Value& indices, int64_t axis, LocationPtr location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis < 0 && axis >= -rank) axis += rank;
  return ir::make(op::take_along_axis, {x, indices}, {{"axis", axis}}, std::move(location));
}

}  // namespace tenon::ops
