// Tensors from nothing: iota and size.
#include <numeric>

#include "tenon/ops/checks.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// --- iota {shape, axis, dtype}: the index along axis ---
//
// iota_axis: the axis exists. iota_dtype: an integer or float dtype.

std::vector<TensorType> iota_infer(const ir::InferArgs& args) {
  const Shape& shape = args.attrs.shape("shape");
  normalize_axis(args.op, args.attrs.i("axis"), shape.size());
  check_dtype(args.op, args.attrs.dtype("dtype"), ir::DTypeClass::kNumeric);
  return {{args.attrs.dtype("dtype"), shape}};
}

std::vector<Literal> iota_eval(const ir::EvalArgs& args) {
  const auto& dims = args.out[0].dims;
  Literal result(args.out[0].dtype, dims);
  const auto axis = static_cast<size_t>(normalize_axis("iota", args.attrs.i("axis"), dims.size()));
  const int64_t stride = contiguous_strides(dims)[axis];
  visit_storage(result.dtype(), [&]<class S>(S) {
    if constexpr (!kIsComplex<S>) {
      S* out = result.as_mutable<S>();
      for (int64_t i = 0; i < result.count(); ++i) {
        out[i] = store_element<S>(i / stride % dims[axis]);
      }
    }
  });
  return {std::move(result)};
}

Val iota_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  const int64_t axis = normalize_axis("iota", node.attrs.i("axis"), index.size());
  return cast(ctx.builder(), index[static_cast<size_t>(axis)], DType::kI64, node.types[0].dtype);
}

std::vector<ir::Sample> iota_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!ir::contains(ir::DTypeClass::kNumeric, dtype)) continue;
    samples.push_back({.attrs = {{"shape", Shape{3, 40}}, {"axis", int64_t{1}}, {"dtype", dtype}}});
    samples.push_back({.attrs = {{"shape", Shape{3, 0}}, {"axis", int64_t{0}}, {"dtype", dtype}}});
  }
  return samples;
}

// --- size {dims, dtype}: the product of dimensions ---

std::vector<TensorType> size_infer(const ir::InferArgs& args) {
  check_dtype(args.op, args.attrs.dtype("dtype"), ir::DTypeClass::kNumeric);
  return {{args.attrs.dtype("dtype"), {}}};
}

std::vector<Literal> size_eval(const ir::EvalArgs& args) {
  Literal result(args.out[0].dtype, {});
  const int64_t value = product(args.attrs.shape("dims")).value();
  visit_storage(result.dtype(), [&]<class S>(S) {
    if constexpr (!kIsComplex<S>) *result.as_mutable<S>() = store_element<S>(value);
  });
  return {std::move(result)};
}

Val size_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val>) {
  kir::Builder& b = ctx.builder();
  return cast(b, b.dim(product(node.attrs.shape("dims"))), DType::kI64, node.types[0].dtype);
}

std::vector<ir::Sample> size_samples() {
  return {{.attrs = {{"dims", Shape{3, 4}}, {"dtype", DType::kF32}}},
          {.attrs = {{"dims", Shape{"n", 0}}, {"dtype", DType::kI64}}}};
}

}  // namespace

namespace op {

const ir::OpDef iota{
    .name = "iota",
    .doc = "The index along an axis at each position of a shape.",
    .traits = ir::kLeaf,
    .attrs = {{"shape", Shape{}, true}, {"axis", int64_t{0}}, {"dtype", DType::kI64}},
    .infer = iota_infer,
    .eval = iota_eval,
    .lower = iota_lower,
};
TENON_OP_SAMPLES(iota, iota_samples)

const ir::OpDef size{
    .name = "size",
    .doc = "The product of dimensions as a 0-d tensor.",
    .traits = ir::kLeaf,
    .attrs = {{"dims", Shape{}, true}, {"dtype", DType::kI64}},
    .infer = size_infer,
    .eval = size_eval,
    .lower = size_lower,
};
TENON_OP_SAMPLES(size, size_samples)

}  // namespace op

std::vector<const ir::OpDef*> leaf_ops() { return {&op::iota, &op::size}; }

Value iota(Shape shape, int64_t axis, DType dtype, LocationPtr location) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0 && axis >= -rank) axis += rank;
  return ir::make(op::iota, {}, {{"shape", std::move(shape)}, {"axis", axis}, {"dtype", dtype}},
                  std::move(location));
}

Value scalar(DType dtype, double value, LocationPtr location) {
  return ir::make_constant(Literal::scalar(dtype, value), std::move(location));
}

Value scalar_int(DType dtype, int64_t value, LocationPtr location) {
  return ir::make_constant(Literal::scalar_int(dtype, value), std::move(location));
}

Value size(const Shape& dims, DType dtype, LocationPtr location) {
  const Dim total = product(dims);
  if (!total.is_static()) {
    return ir::make(op::size, {}, {{"dims", Shape{total}}, {"dtype", dtype}}, std::move(location));
  }
  // As the op rounds it, so that a size is the same number whether it is static or not.
  Literal value(dtype, {});
  value.set_int(0, total.value());
  return ir::make_constant(std::move(value), std::move(location));
}

}  // namespace tenon::ops
