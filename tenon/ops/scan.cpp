// cumsum, cumprod, cummax, cummin (x) {axis, reverse, exclusive}: what comes of the elements of an
// axis so far.
#include "tenon/ops/scan.h"

#include <limits>

#include "tenon/ops/checks.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/scalar.h"
#include "tenon/ops/symbolic.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

ScanKind kind_of(std::string_view op) {
  if (op == "cumsum") return ScanKind::kSum;
  if (op == "cumprod") return ScanKind::kProd;
  return op == "cummax" ? ScanKind::kMax : ScanKind::kMin;
}

bool is_extreme(ScanKind kind) { return kind == ScanKind::kMax || kind == ScanKind::kMin; }

DType scan_result(ScanKind kind, DType dtype) {
  return is_extreme(kind) || is_float(dtype) ? dtype : scan_dtype(kind, dtype);
}

std::vector<TensorType> scan_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  check_dtype(args.op, x.dtype, ir::DTypeClass::kReal);
  normalize_axis(args.op, args.attrs.i("axis"), x.rank());
  return {{scan_result(kind_of(args.op), x.dtype), x.shape}};
}

template <class T>
T start_of(ScanKind kind) {
  using Limits = std::numeric_limits<T>;
  switch (kind) {
    case ScanKind::kSum: return T(0);
    case ScanKind::kProd: return T(1);
    case ScanKind::kMax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ScanKind::kMin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return T();
}

// Numbers narrower than T begin at an end of their own.
template <class T>
T start_of(ScanKind kind, DType dtype) {
  if (!is_extreme(kind) || !is_integer(dtype)) return start_of<T>(kind);
  const int width = static_cast<int>(size_of(dtype)) * 8;
  const bool largest = kind == ScanKind::kMin;
  if (is_unsigned(dtype)) return largest ? static_cast<T>(~uint64_t{0} >> (64 - width)) : T(0);
  const auto most = static_cast<int64_t>(~uint64_t{0} >> (65 - width));
  return static_cast<T>(largest ? most : -most - 1);
}

template <class T>
T stepped(ScanKind kind, T before, T element) {
  switch (kind) {
    case ScanKind::kSum: return elt::plus(before, element);
    case ScanKind::kProd: return elt::times(before, element);
    case ScanKind::kMax: return elt::larger(before, element);
    case ScanKind::kMin: return elt::smaller(before, element);
  }
  return before;
}

template <class T>
std::vector<Literal> scan(const ir::EvalArgs& args, ScanKind kind) {
  const Literal& x = args.in[0];
  Literal result(args.out[0].dtype, x.dims());
  const auto axis = static_cast<size_t>(normalize_axis("scan", args.attrs.i("axis"), x.rank()));
  const bool reverse = args.attrs.b("reverse");
  const bool exclusive = args.attrs.b("exclusive");
  const int64_t n = x.dims()[axis];
  const int64_t stride = contiguous_strides(x.dims())[axis];
  for (int64_t line = 0; n > 0 && line < x.count() / n; ++line) {
    const int64_t first = line / stride * stride * n + line % stride;
    T total = start_of<T>(kind, x.dtype());
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = first + (reverse ? n - 1 - k : k) * stride;
      T value;
      read_run(x, at, 1, 1, &value);
      const T next = stepped(kind, total, value);
      write_run(result, at, 1, exclusive ? &total : &next);
      total = next;
    }
  }
  return {std::move(result)};
}

template <ScanKind kind>
std::vector<Literal> scan_eval(const ir::EvalArgs& args) {
  switch (scan_dtype(kind, args.in[0].dtype())) {
    case DType::kF32: return scan<float>(args, kind);
    case DType::kF64: return scan<double>(args, kind);
    case DType::kBool: return scan<bool>(args, kind);
    default:
      return is_unsigned(args.in[0].dtype()) ? scan<uint64_t>(args, kind)
                                             : scan<int64_t>(args, kind);
  }
}

// One element on its own: what comes of those before it. Programs get the pass that walks a line
// once.
Val scan_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const ScanKind kind = kind_of(node.op->name);
  const auto axis =
      static_cast<size_t>(normalize_axis(node.op->name, node.attrs.i("axis"), index.size()));
  const DType acc = scan_dtype(kind, x.dtype());
  const bool reverse = node.attrs.b("reverse");
  const bool exclusive = node.attrs.b("exclusive");
  const Val n = b.dim(x.shape()[axis]);
  const Val here = index[axis];
  // Terms in the order of the scan; those past this element are left out, since the bounds of a
  // loop may not vary.
  const kir::CarriedSpec carried[] = {{emit_scan_start(b, kind, x.dtype())}};
  const auto step = [&](Val k, std::span<const Val> in) -> std::vector<Val> {
    const Val from = reverse ? b.sub(b.sub(n, b.i64(1)), k) : k;
    const kir::Pred before = reverse ? (exclusive ? kir::Pred::kSGt : kir::Pred::kSGe)
                                     : (exclusive ? kir::Pred::kSLt : kir::Pred::kSLe);
    Index at(index.begin(), index.end());
    at[axis] = from;
    const Val term = cast(b, ctx.element(x, at), x.dtype(), acc);
    return {b.select(b.cmp(before, from, here), emit_scan_step(b, kind, acc, in[0], term), in[0])};
  };
  const Val total = b.loop(b.i64(0), n, {}, carried, step)[0];
  return cast(b, total, acc, node.types[0].dtype);
}

std::vector<ir::Sample> scan_samples() {
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

template <ScanKind kind>
ir::OpDef scan_op(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .traits = ir::kAnchor,
          .min_operands = 1,
          .max_operands = 1,
          .attrs = {{"axis", int64_t{0}, true}, {"reverse", false}, {"exclusive", false}},
          .infer = scan_infer,
          .eval = scan_eval<kind>,
          .lower = scan_lower};
}

}  // namespace

bool is_scan(const ir::Node& node) {
  return node.op == &op::cumsum || node.op == &op::cumprod || node.op == &op::cummax ||
         node.op == &op::cummin;
}

ScanKind scan_kind(const ir::Node& node) { return kind_of(node.op->name); }

DType scan_dtype(ScanKind kind, DType dtype) {
  if (is_extreme(kind)) return is_half(dtype) ? DType::kF32 : dtype;
  if (is_float(dtype)) return DType::kF64;
  return is_unsigned(dtype) ? DType::kU64 : DType::kI64;
}

Val emit_scan_start(kir::Builder& b, ScanKind kind, DType dtype) {
  const kir::Type type = kir::type_of(scan_dtype(kind, dtype));
  if (kir::is_float(type)) return b.constant_float(type, start_of<double>(kind));
  if (dtype == DType::kBool && is_extreme(kind)) return b.boolean(kind == ScanKind::kMin);
  const auto start = is_unsigned(dtype) ? static_cast<int64_t>(start_of<uint64_t>(kind, dtype))
                                        : start_of<int64_t>(kind, dtype);
  return b.constant_int(type, start);
}

Val emit_scan_step(kir::Builder& b, ScanKind kind, DType acc, Val before, Val element) {
  return stepped(kind, elt::Sym{&b, before, acc}, elt::Sym{&b, element, acc}).v;
}

namespace op {

const ir::OpDef cumsum = scan_op<ScanKind::kSum>(
    "cumsum",
    "The running sum along an axis, from the end with `reverse`, without the element itself with "
    "`exclusive`; floats accumulate in f64, integers and bool in i64 or u64.");
const ir::OpDef cumprod =
    scan_op<ScanKind::kProd>("cumprod", "The running product, in the same way.");
const ir::OpDef cummax = scan_op<ScanKind::kMax>(
    "cummax", "The largest element so far along an axis, NaN from the first one on.");
const ir::OpDef cummin = scan_op<ScanKind::kMin>(
    "cummin", "The smallest element so far along an axis, NaN from the first one on.");
TENON_OP_SAMPLES(cumsum, scan_samples)
TENON_OP_SAMPLES(cumprod, scan_samples)
TENON_OP_SAMPLES(cummax, scan_samples)
TENON_OP_SAMPLES(cummin, scan_samples)

}  // namespace op

std::vector<const ir::OpDef*> scan_ops() {
  return {&op::cumsum, &op::cumprod, &op::cummax, &op::cummin};
}

namespace {

Value along(const ir::OpDef& op, const Value& x, int64_t axis, bool reverse, bool exclusive,
            LocationPtr location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis < 0 && axis >= -rank) axis += rank;
  return ir::make(op, {x}, {{"axis", axis}, {"reverse", reverse}, {"exclusive", exclusive}},
                  std::move(location));
}

}  // namespace

Value cumsum(const Value& x, int64_t axis, bool reverse, bool exclusive, LocationPtr location) {
  return along(op::cumsum, x, axis, reverse, exclusive, std::move(location));
}
Value cumprod(const Value& x, int64_t axis, bool reverse, bool exclusive, LocationPtr location) {
  return along(op::cumprod, x, axis, reverse, exclusive, std::move(location));
}
Value cummax(const Value& x, int64_t axis, bool reverse, bool exclusive, LocationPtr location) {
  return along(op::cummax, x, axis, reverse, exclusive, std::move(location));
}
Value cummin(const Value& x, int64_t axis, bool reverse, bool exclusive, LocationPtr location) {
  return along(op::cummin, x, axis, reverse, exclusive, std::move(location));
}

}  // namespace tenon::ops
