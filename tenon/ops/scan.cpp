// cumsum(x) {axis, reverse, exclusive}: the running sum along an axis.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/scalar.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Type;
using kir::Val;

namespace {

// The accumulation type: f64 for floats; integers and bool as in sum.
DType scan_dtype(DType dtype) {
  if (is_float(dtype)) return DType::kF64;
  return is_unsigned(dtype) ? DType::kU64 : DType::kI64;
}
DType scan_result(DType dtype) { return is_float(dtype) ? dtype : scan_dtype(dtype); }

std::vector<TensorType> cumsum_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  check_dtype(args.op, x.dtype, ir::DTypeClass::kReal);
  normalize_axis(args.op, args.attrs.i("axis"), x.rank());
  return {{scan_result(x.dtype), x.shape}};
}

template <class T>
std::vector<Literal> scan(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  Literal result(args.out[0].dtype, x.dims());
  const auto axis = static_cast<size_t>(normalize_axis("cumsum", args.attrs.i("axis"), x.rank()));
  const bool reverse = args.attrs.b("reverse");
  const bool exclusive = args.attrs.b("exclusive");
  const int64_t n = x.dims()[axis];
  const int64_t stride = contiguous_strides(x.dims())[axis];
  for (int64_t line = 0; n > 0 && line < x.count() / n; ++line) {
    const int64_t first = line / stride * stride * n + line % stride;
    T total{};
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = first + (reverse ? n - 1 - k : k) * stride;
      T value;
      read_run(x, at, 1, 1, &value);
      const T next = elt::plus(total, value);
      write_run(result, at, 1, exclusive ? &total : &next);
      total = next;
    }
  }
  return {std::move(result)};
}

std::vector<Literal> cumsum_eval(const ir::EvalArgs& args) {
  switch (scan_dtype(args.in[0].dtype())) {
    case DType::kF64: return scan<double>(args);
    case DType::kU64: return scan<uint64_t>(args);
    default: return scan<int64_t>(args);
  }
}

// One element on its own: the sum of those before it. Programs get the pass that walks a line once.
Val cumsum_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const auto axis =
      static_cast<size_t>(normalize_axis("cumsum", node.attrs.i("axis"), index.size()));
  const DType acc = scan_dtype(x.dtype());
  const bool reverse = node.attrs.b("reverse");
  const bool exclusive = node.attrs.b("exclusive");
  const Val n = b.dim(x.shape()[axis]);
  const Val here = index[axis];
  const Val zero = is_float(acc) ? b.constant_float(Type::kF64, 0) : b.constant_int(Type::kI64, 0);
  // Terms in the order of the running sum; those past this element are left out, since the bounds
  // of a loop may not vary.
  const kir::CarriedSpec carried[] = {{zero}};
  const auto step = [&](Val k, std::span<const Val> in) -> std::vector<Val> {
    const Val from = reverse ? b.sub(b.sub(n, b.i64(1)), k) : k;
    const kir::Pred before = reverse ? (exclusive ? kir::Pred::kSGt : kir::Pred::kSGe)
                                     : (exclusive ? kir::Pred::kSLt : kir::Pred::kSLe);
    Index at(index.begin(), index.end());
    at[axis] = from;
    const Val term = cast(b, ctx.element(x, at), x.dtype(), acc);
    return {b.select(b.cmp(before, from, here), b.add(in[0], term), in[0])};
  };
  const Val total = b.loop(b.i64(0), n, {}, carried, step)[0];
  return cast(b, total, acc, node.types[0].dtype);
}

std::vector<ir::Sample> cumsum_samples() {
  std::vector<ir::Sample> samples;
  const auto add = [&](DType d, Shape shape, int64_t axis, bool reverse, bool exclusive) {
    samples.push_back({.in = {{d, std::move(shape)}},
                       .attrs = {{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}}});
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    if (!ir::contains(ir::DTypeClass::kReal, d)) continue;
    add(d, {3, 7}, 1, false, false);
    add(d, {4, "n"}, 0, true, false);
    add(d, {2, 5}, 1, i % 2 == 0, true);
    add(d, {2, 0}, 1, false, false);
  }
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef cumsum{
    .name = "cumsum",
    .doc =
        "The running sum along an axis, from the end with `reverse`, without the element itself "
        "with `exclusive`; floats accumulate in f64, integers and bool in i64 or u64.",
    .traits = ir::kAnchor,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"axis", int64_t{0}, true}, {"reverse", false}, {"exclusive", false}},
    .infer = cumsum_infer,
    .eval = cumsum_eval,
    .lower = cumsum_lower,
    .samples = cumsum_samples,
};

}  // namespace op

std::vector<const ir::OpDef*> scan_ops() { return {&op::cumsum}; }

Value cumsum(const Value& x, int64_t axis, bool reverse, bool exclusive, LocationPtr location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis < 0 && axis >= -rank) axis += rank;
  return ir::make(op::cumsum, {x}, {{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}},
                  std::move(location));
}

}  // namespace tenon::ops
