// concatenate and pad, and the functions stack, split and tile over them.
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

// --- concatenate(parts …) {axis} ---
//
// concatenate_c1: parts have one rank, at least 1. concatenate_c2: they agree on every other axis.

std::vector<TensorType> concatenate_infer(const ir::InferArgs& args) {
  const DType dtype = check_same_dtype(args);
  const size_t rank = args.in[0].rank();
  for (const TensorType& part : args.in) {
    if (rank > 0 && part.rank() == rank) continue;
    throw ShapeError(fmt::format("concatenate: parts need one rank of at least 1, got {} and {}",
                                 rank, part.rank()),
                     {.label = "concatenate_c1", .details = operand_types(args.in)});
  }
  const auto axis = static_cast<size_t>(normalize_axis(args.op, args.attrs.i("axis"), rank));
  Shape shape = args.in[0].shape;
  for (const TensorType& part : args.in.subspan(1)) {
    for (size_t i = 0; i < rank; ++i) {
      if (i == axis || same_dim(shape[i], part.shape[i])) continue;
      throw ShapeError(fmt::format("concatenate: parts differ on axis {}: {} and {}", i,
                                   shape[i].str(), part.shape[i].str()),
                       {.label = "concatenate_c2", .details = operand_types(args.in)});
    }
    shape[axis] = shape[axis] + part.shape[axis];
  }
  return {{dtype, shape}};
}

std::vector<Literal> concatenate_eval(const ir::EvalArgs& args) {
  Literal result(args.out[0].dtype, args.out[0].dims);
  const auto axis = static_cast<size_t>(
      normalize_axis("concatenate", args.attrs.i("axis"), args.out[0].dims.size()));
  const std::vector<int64_t> strides = contiguous_strides(args.out[0].dims);
  int64_t offset = 0;
  for (const Literal& part : args.in) {
    write_strided(part, result, offset * strides[axis], strides);
    offset += part.dims()[axis];
  }
  return {std::move(result)};
}

Val concatenate_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                      std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const auto axis =
      static_cast<size_t>(normalize_axis("concatenate", node.attrs.i("axis"), index.size()));
  std::vector<Dim> starts{0};
  for (const Value& part : node.operands) starts.push_back(starts.back() + part.shape()[axis]);
  const size_t parts = node.operands.size();
  Val result = nullptr;
  for (size_t k = parts; k-- > 0;) {
    Index at(index.begin(), index.end());
    at[axis] = b.sub(index[axis], b.dim(starts[k]));
    const Val below_end = b.cmp(Pred::kSLt, index[axis], b.dim(starts[k + 1]));
    Val inside = k + 1 < parts ? below_end : b.boolean(true);
    if (k > 0) {
      inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kSGe, index[axis], b.dim(starts[k])));
    }
    const Val element = ctx.element_if(node.operands[k], at, inside);
    result = result == nullptr ? element : b.select(below_end, element, result);
  }
  return result;
}

std::vector<ir::Sample> concatenate_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back(
        {.in = {{d, {2, 3}}, {d, {0, 3}}, {d, {4, 3}}}, .attrs = {{"axis", int64_t{0}}}});
    samples.push_back({.in = {{d, {"n", 2}}, {d, {"n", 5}}}, .attrs = {{"axis", int64_t{1}}}});
  }
  samples.push_back(
      {.in = {{DType::kF32, {"n"}}, {DType::kF32, {"m"}}}, .attrs = {{"axis", int64_t{0}}}});
  return samples;
}

// --- pad(x, value) {before, after} ---
//
// pad_c1: one entry an axis, not known to be negative. pad_c2: value is 0-d of x's dtype.

std::vector<TensorType> pad_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  const Shape& before = args.attrs.shape("before");
  const Shape& after = args.attrs.shape("after");
  const auto negative = [](const Dim& d) { return Dim::less(d, 0).value_or(false); };
  if (before.size() != x.rank() || after.size() != x.rank() ||
      std::any_of(before.begin(), before.end(), negative) ||
      std::any_of(after.begin(), after.end(), negative)) {
    throw ValueError(fmt::format("pad: before {} and after {} need one entry that is not negative "
                                 "for each axis of {}",
                                 str(before), str(after), str(x.shape)),
                     {.label = "pad_c1"});
  }
  if (!args.in[1].shape.empty() || args.in[1].dtype != x.dtype) {
    throw TypeError("pad: value must be 0-d and of the operand's dtype",
                    {.label = "pad_c2", .details = operand_types(args.in)});
  }
  Shape shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = before[i] + shape[i] + after[i];
  return {{x.dtype, shape}};
}

std::vector<Literal> pad_eval(const ir::EvalArgs& args) {
  const std::vector<int64_t> zero_strides(args.out[0].dims.size(), 0);
  Literal result = copy_strided(args.in[1], 0, zero_strides, args.out[0]);
  const std::vector<int64_t> strides = contiguous_strides(args.out[0].dims);
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    first += args.attrs.shape("before")[i].value() * strides[i];
  }
  write_strided(args.in[0], result, first, strides);
  return {std::move(result)};
}

Val pad_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Shape& before = node.attrs.shape("before");
  const Shape& after = node.attrs.shape("after");
  Val inside = b.boolean(true);
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(b.sub(index[i], b.dim(before[i])));
    if (before[i] != Dim(0)) {
      inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kSGe, at[i], b.i64(0)));
    }
    if (after[i] != Dim(0)) {
      inside = b.binary(Op::kAnd, inside, b.cmp(Pred::kSLt, at[i], b.dim(x.shape()[i])));
    }
  }
  const Val value = ctx.element(node.operands[1], {});
  return b.select(inside, ctx.element_if(x, at, inside), value);
}

std::vector<ir::Sample> pad_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    samples.push_back({.in = {{d, {3, "n"}}, {d, {}}},
                       .attrs = {{"before", Shape{1, 0}}, {"after", Shape{0, 2}}}});
    samples.push_back(
        {.in = {{d, {0}}, {d, {}}}, .attrs = {{"before", Shape{2}}, {"after", Shape{1}}}});
  }
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef concatenate{
    .name = "concatenate",
    .doc = "The operands one after another along an axis.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = -1,
    .attrs = {{"axis", int64_t{0}}},
    .infer = concatenate_infer,
    .eval = concatenate_eval,
    .lower = concatenate_lower,
};
TENON_OP_SAMPLES(concatenate, concatenate_samples)

const ir::OpDef pad{
    .name = "pad",
    .doc = "The operand with `before` and `after` elements of a value around it on every axis.",
    .traits = ir::kMovement,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"before", Shape{}, true}, {"after", Shape{}, true}},
    .infer = pad_infer,
    .eval = pad_eval,
    .lower = pad_lower,
};
TENON_OP_SAMPLES(pad, pad_samples)

}  // namespace op

std::vector<const ir::OpDef*> joining_ops() { return {&op::concatenate, &op::pad}; }

namespace {

std::vector<Value> promoted(const std::vector<Value>& parts, const LocationPtr& location) {
  std::vector<Value> out = parts;
  if (out.empty()) return out;
  DType common = out[0].dtype();
  for (const Value& part : out) common = promote(common, part.dtype());
  for (Value& part : out) part = cast(part, common, location);
  return out;
}

}  // namespace

Value concatenate(const std::vector<Value>& parts, int64_t axis, LocationPtr location) {
  if (!parts.empty() && !parts[0].shape().empty()) {
    with_location(location,
                  [&] { axis = normalize_axis("concatenate", axis, parts[0].shape().size()); });
    if (parts.size() == 1) return parts[0];
  }
  return ir::make(op::concatenate, promoted(parts, location), {{"axis", axis}}, location);
}

Value stack(const std::vector<Value>& parts, int64_t axis, LocationPtr location) {
  std::vector<Value> expanded;
  for (const Value& part : parts) {
    if (part.shape() != parts[0].shape()) {
      throw ShapeError(fmt::format("stack: parts must have one shape, got {} and {}",
                                   str(parts[0].shape()), str(part.shape())),
                       {.label = "stack_c1", .location = ir::str(location)});
    }
    expanded.push_back(expand_dims(part, {axis}, location));
  }
  return concatenate(expanded, axis, location);
}

std::vector<Value> split(const Value& x, int64_t parts, int64_t axis, LocationPtr location) {
  std::vector<Dim> ends;
  with_location(location, [&] {
    const auto a = static_cast<size_t>(normalize_axis("split", axis, x.shape().size()));
    const Dim& dim = x.shape()[a];
    if (parts < 1 || !same_dim(mod(dim, parts < 1 ? 1 : parts), 0)) {
      throw ValueError(fmt::format("split: {} parts do not divide axis {} of {}", parts, axis,
                                   ir::brief(x.type())),
                       {.label = "split_c1"});
    }
    for (int64_t k = 1; k < parts; ++k) ends.push_back(floor_div(dim, parts) * k);
  });
  return split_at(x, ends, axis, std::move(location));
}

std::vector<Value> split_at(const Value& x, const std::vector<Dim>& ends, int64_t axis,
                            LocationPtr location) {
  std::vector<Value> pieces;
  std::optional<Dim> start;
  for (const Dim& end : ends) {
    pieces.push_back(slice_axis(x, axis, {.start = start, .stop = end}, location));
    start = end;
  }
  pieces.push_back(slice_axis(x, axis, {.start = start, .stop = std::nullopt}, location));
  return pieces;
}

Value pad(const Value& x, const Shape& before, const Shape& after, const Value& value,
          LocationPtr location) {
  return ir::make(op::pad, {x, cast(value, x.dtype(), location)},
                  {{"before", before}, {"after", after}}, location);
}

Value tile(const Value& x, const std::vector<int64_t>& repeats, LocationPtr location) {
  const size_t rank = std::max(repeats.size(), x.shape().size());
  Shape spread;
  Shape merged;
  std::vector<int64_t> new_axes;
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_last = rank - i;
    const int64_t n = from_last <= repeats.size() ? repeats[repeats.size() - from_last] : 1;
    if (n < 0) {
      throw ValueError(fmt::format("tile: {} repeats", n),
                       {.label = "tile_c1", .location = ir::str(location)});
    }
    const bool present = from_last <= x.shape().size();
    const Dim dim = present ? x.shape()[x.shape().size() - from_last] : Dim(1);
    new_axes.push_back(static_cast<int64_t>(spread.size()));
    spread.push_back(n);
    if (present) spread.push_back(dim);
    merged.push_back(dim * n);
  }
  const Value spaced = expand_dims(x, new_axes, location);
  return reshape(broadcast_to(spaced, spread, location), merged, location);
}

}  // namespace tenon::ops
