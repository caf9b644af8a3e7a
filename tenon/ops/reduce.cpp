// sum, prod, max, min, any, all. Attributes: axes (sorted, in 0 … rank-1), keepdims.
#include "tenon/ops/reduce.h"

#include <limits>

#include "tenon/ops/checks.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/scalar.h"
#include "tenon/ops/symbolic.h"

namespace tenon::ops {

using ir::DTypeClass;
using ir::TensorType;
using kir::Combine;
using kir::Type;
using kir::Val;

namespace {

// --- what the six share ---

std::vector<TensorType> infer_reduction(const ir::InferArgs& args, DTypeClass cls, DType result) {
  check_dtype(args.op, args.in[0].dtype, cls);
  const Shape& shape = args.in[0].shape;
  const auto axes = normalize_axes(args.op, args.attrs.ints("axes"), shape.size());
  return {{result, reduced_shape(shape, axes, args.attrs.b("keepdims"))}};
}

// Element strides by which a walk over the operand moves in the result: 0 along reduced axes.
std::vector<int64_t> result_strides(std::span<const int64_t> dims,
                                    const std::vector<int64_t>& axes) {
  std::vector<int64_t> strides(dims.size(), 0);
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end()) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

// Folds the operand in memory order into one accumulator per result element. F: static T
// apply(T accumulator, T element).
template <class T, class F>
std::vector<Literal> fold(const ir::EvalArgs& args, T init) {
  const Literal& x = args.in[0];
  Literal result(args.out[0].dtype, args.out[0].dims);
  const auto count = static_cast<size_t>(result.count());
  auto accumulators = std::make_unique<T[]>(count);
  std::fill_n(accumulators.get(), count, init);
  const auto axes = normalize_axes("reduction", args.attrs.ints("axes"), x.rank());
  alignas(64) T run_values[kRun];
  for_each_run(x.dims(), {contiguous_strides(x.dims()), result_strides(x.dims(), axes)},
               [&](const Run& run) {
                 read_run(x, run.at[0], run.step[0], run.count, run_values);
                 T* to = accumulators.get() + run.at[1];
                 if (run.step[1] == 0) {
                   T value = *to;
                   for (int64_t i = 0; i < run.count; ++i) value = F::apply(value, run_values[i]);
                   *to = value;
                 } else {
                   for (int64_t i = 0; i < run.count; ++i) {
                     T& value = to[i * run.step[1]];
                     value = F::apply(value, run_values[i]);
                   }
                 }
               });
  for (int64_t i = 0; i < result.count(); i += kRun) {
    write_run(result, i, std::min(kRun, result.count() - i), accumulators.get() + i);
  }
  return {std::move(result)};
}

// What a kernel's reduction over `node` walks.
struct Site {
  const ir::Value& x;
  std::vector<int64_t> axes;
  bool keepdims;
  ReduceNest nest;

  explicit Site(const ir::Node& node)
      : x(node.operands[0]),
        axes(normalize_axes(node.op->name, node.attrs.ints("axes"), x.shape().size())),
        keepdims(node.attrs.b("keepdims")) {
    for (int64_t axis : axes) nest.dims.push_back(x.shape()[static_cast<size_t>(axis)]);
    nest.contiguous = !axes.empty() && axes.back() + 1 == static_cast<int64_t>(x.shape().size());
  }
  Val element(LowerContext& ctx, std::span<const Val> index, std::span<const Val> reduced) const {
    return ctx.element(x, operand_index(x.shape().size(), axes, keepdims, index, reduced));
  }
};

// A reduction by one instruction: combine(accumulator, element in type `acc`).
Val emit_simple(LowerContext& ctx, const ir::Node& node, std::span<const Val> index, DType acc,
                Val init, Combine combine, elt::Sym (*join)(elt::Sym, elt::Sym)) {
  const Site site(node);
  kir::Builder& b = ctx.builder();
  const kir::CarriedSpec carried[] = {{init, combine}};
  const auto step = [&](std::span<const Val> in, std::span<const Val> reduced) {
    const Val value = cast(b, site.element(ctx, index, reduced), site.x.dtype(), acc);
    return std::vector<Val>{join({&b, in[0], acc}, {&b, value, acc}).v};
  };
  const Val result = emit_reduction(ctx, site.nest, index, carried, step)[0];
  return cast(b, result, acc, node.types[0].dtype);
}

std::vector<ir::Sample> reduction_samples(DTypeClass cls, bool empty, double lo, double hi) {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!ir::contains(cls, dtype)) continue;
    auto add = [&](Shape shape, std::vector<int64_t> axes, bool keepdims) {
      samples.push_back({.in = {{dtype, std::move(shape)}},
                         .attrs = {{"axes", std::move(axes)}, {"keepdims", keepdims}},
                         .lo = lo,
                         .hi = hi});
    };
    add({5, 19}, {1}, false);
    add({5, 19}, {0}, true);
    add({2, 3, 5}, {0, 2}, false);
    add({"n", 3}, {0, 1}, false);
    add({}, {}, false);
    add({2, 3}, {}, false);
    if (empty) add({3, 0}, {1}, false);
    add({0, 3}, {1}, true);
  }
  return samples;
}

// The type that sums and products are computed and (but for f16 and bf16) returned in.
DType sum_dtype(DType dtype) {
  if (is_half(dtype)) return DType::kF32;
  if (is_float(dtype)) return dtype;
  return is_unsigned(dtype) ? DType::kU64 : DType::kI64;
}
DType sum_result(DType dtype) { return is_half(dtype) ? dtype : sum_dtype(dtype); }

// --- sum ---

struct Plus {
  template <class T>
  static T apply(T a, T b) {
    return elt::plus(a, b);
  }
};

std::vector<TensorType> sum_infer(const ir::InferArgs& args) {
  return infer_reduction(args, DTypeClass::kReal, sum_result(args.in[0].dtype));
}

std::vector<Literal> sum_eval(const ir::EvalArgs& args) {
  const DType dtype = args.in[0].dtype();
  if (is_float(dtype)) return fold<double, Plus>(args, 0);
  if (is_unsigned(dtype)) return fold<uint64_t, Plus>(args, 0);
  return fold<int64_t, Plus>(args, 0);
}

Val sum_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const DType acc = sum_dtype(node.operands[0].dtype());
  if (!is_float(acc)) {
    return emit_simple(ctx, node, index, acc, b.i64(0), Combine::kAdd, elt::plus);
  }
  const Site site(node);
  const Val total =
      emit_float_sum(ctx, site.nest, index, kir::type_of(acc), [&](std::span<const Val> reduced) {
        return cast(b, site.element(ctx, index, reduced), site.x.dtype(), acc);
      });
  return from_arith(b, total, node.types[0].dtype);
}

std::vector<ir::Sample> sum_samples() {
  auto samples = reduction_samples(DTypeClass::kReal, true, -2, 2);
  samples.push_back({.in = {{DType::kF32, {3, 2500}}},
                     .attrs = {{"axes", std::vector<int64_t>{1}}, {"keepdims", false}}});
  return samples;
}

// --- prod ---

struct Times {
  template <class T>
  static T apply(T a, T b) {
    return elt::times(a, b);
  }
};

std::vector<TensorType> prod_infer(const ir::InferArgs& args) {
  return infer_reduction(args, DTypeClass::kReal, sum_result(args.in[0].dtype));
}

std::vector<Literal> prod_eval(const ir::EvalArgs& args) {
  const DType dtype = args.in[0].dtype();
  if (is_float(dtype)) return fold<double, Times>(args, 1);
  if (is_unsigned(dtype)) return fold<uint64_t, Times>(args, 1);
  return fold<int64_t, Times>(args, 1);
}

Val prod_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const DType acc = sum_dtype(node.operands[0].dtype());
  const Type type = kir::type_of(acc);
  const Val one = is_float(acc) ? b.constant_float(type, 1) : b.constant_int(type, 1);
  return emit_simple(ctx, node, index, acc, one, Combine::kMul, elt::times);
}

std::vector<ir::Sample> prod_samples() {
  return reduction_samples(DTypeClass::kReal, true, 0.5, 1.5);
}

// --- max and min: <op>_empty: no axis is certainly empty, or `neutral` says what that gives ---

template <bool kMax>
struct Extreme {
  template <class T>
  static T apply(T a, T b) {
    return kMax ? elt::larger(a, b) : elt::smaller(a, b);
  }
  // The neutral element: the lowest value of the dtype for max.
  template <class T>
  static T init(DType dtype) {
    using L = std::numeric_limits<T>;
    if constexpr (std::same_as<T, bool>) {
      return !kMax;
    } else if constexpr (L::has_infinity) {
      return kMax ? -L::infinity() : L::infinity();
    } else {
      const auto unused = 64 - 8 * static_cast<int>(size_of(dtype));
      return (kMax ? L::min() : L::max()) >> unused;
    }
  }
  static std::vector<TensorType> infer(const ir::InferArgs& args) {
    auto types = infer_reduction(args, DTypeClass::kReal, args.in[0].dtype);
    const Shape& shape = args.in[0].shape;
    if (!args.attrs.b("neutral")) {
      refuse_empty(args.op, shape, normalize_axes(args.op, args.attrs.ints("axes"), shape.size()));
    }
    return types;
  }
  static std::vector<Literal> eval(const ir::EvalArgs& args) {
    const Literal& x = args.in[0];
    if (element_count(args.out[0].dims) > 0 && !args.attrs.b("neutral")) {
      refuse_empty(kMax ? "max" : "min", Shape(x.dims().begin(), x.dims().end()),
                   normalize_axes("max", args.attrs.ints("axes"), x.rank()));
    }
    switch (lane_of(x.dtype())) {
      case Lane::kF32: return fold<float, Extreme>(args, init<float>(x.dtype()));
      case Lane::kF64: return fold<double, Extreme>(args, init<double>(x.dtype()));
      case Lane::kI64: return fold<int64_t, Extreme>(args, init<int64_t>(x.dtype()));
      case Lane::kU64: return fold<uint64_t, Extreme>(args, init<uint64_t>(x.dtype()));
      default: return fold<bool, Extreme>(args, init<bool>(x.dtype()));
    }
  }
  static Val lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
    kir::Builder& b = ctx.builder();
    const DType dtype = node.operands[0].dtype();
    const DType acc = is_half(dtype) ? DType::kF32 : dtype;
    if (!node.attrs.b("neutral")) check_not_empty(b, Site(node).nest.dims, node.types[0].shape);
    const bool loose = is_float(acc) && node.attrs.b("shift");
    return emit_simple(ctx, node, index, acc, extreme_start(b, acc, kMax),
                       extreme_combine(acc, kMax), loose ? either : apply<elt::Sym>);
  }
  // One instruction; with a NaN it gives either.
  static elt::Sym either(elt::Sym a, elt::Sym b) {
    return a.with(a.b->binary(kMax ? kir::Op::kFMaxFast : kir::Op::kFMinFast, a.v, b.v));
  }
  static std::vector<ir::Sample> samples() {
    auto samples = reduction_samples(DTypeClass::kReal, false, -100, 100);
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kU8, DType::kI32}) {
      for (const Shape& shape : {Shape{3, 0}, Shape{3, "n"}}) {
        samples.push_back(
            {.in = {{dtype, shape}},
             .attrs = {{"axes", std::vector<int64_t>{1}}, {"keepdims", false}, {"neutral", true}}});
      }
    }
    return samples;
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

// --- any and all: bool; true for no elements in all, false in any ---

template <bool kAny>
struct Quantifier {
  template <class T>
  static T apply(T a, T b) {
    return kAny ? (a || b) : (a && b);
  }
  static elt::Sym join(elt::Sym a, elt::Sym b) {
    return kAny ? elt::either(a, b) : elt::both(a, b);
  }
  static std::vector<TensorType> infer(const ir::InferArgs& args) {
    return infer_reduction(args, DTypeClass::kBool, DType::kBool);
  }
  static std::vector<Literal> eval(const ir::EvalArgs& args) {
    return fold<bool, Quantifier>(args, !kAny);
  }
  static Val lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
    return emit_simple(ctx, node, index, DType::kBool, ctx.builder().boolean(!kAny),
                       kAny ? Combine::kOr : Combine::kAnd, join);
  }
  static std::vector<ir::Sample> samples() {
    return reduction_samples(DTypeClass::kBool, true, 0, 1);
  }
};
using Any = Quantifier<true>;
using All = Quantifier<false>;

}  // namespace

namespace op {

#define TENON_REDUCTION(NAME, INFER, EVAL, LOWER, SAMPLES, DOC, ...) \
  const ir::OpDef NAME{ \
      .name = #NAME, \
      .doc = DOC, \
      .traits = ir::kReduction, \
      .min_operands = 1, \
      .max_operands = 1, \
      .attrs = {{"axes", std::vector<int64_t>{}, true}, \
                {"keepdims", false} __VA_OPT__(, ) __VA_ARGS__}, \
      .infer = INFER, \
      .eval = EVAL, \
      .lower = LOWER, \
  }; \
  TENON_OP_SAMPLES(NAME, SAMPLES)
TENON_REDUCTION(sum, sum_infer, sum_eval, sum_lower, sum_samples,
                "The sum over axes; integers and bool in i64 or u64, floats in at least f32 by "
                "blocks; 0 for no elements.")
TENON_REDUCTION(prod, prod_infer, prod_eval, prod_lower, prod_samples,
                "The product over axes, in the types of sum; 1 for no elements.")
TENON_REDUCTION(max, Max::infer, Max::eval, Max::lower, Max::samples,
                "The largest element over axes; NaN if there is one. No elements are a ValueError, "
                "or with `neutral` give the lowest value. With `shift`, for a number that is taken "
                "from all exponents of a sum, a NaN may be passed over and a zero have either "
                "sign.",
                {"neutral", false}, {"shift", false})
TENON_REDUCTION(
    min, Min::infer, Min::eval, Min::lower, Min::samples,
    "The smallest element over axes; NaN if there is one. No elements are a ValueError, "
    "or with `neutral` give the highest value. `shift` as in max.",
    {"neutral", false}, {"shift", false})
TENON_REDUCTION(any, Any::infer, Any::eval, Any::lower, Any::samples,
                "Whether any element (bool) over axes holds; false for no elements.")
TENON_REDUCTION(all, All::infer, All::eval, All::lower, All::samples,
                "Whether all elements (bool) over axes hold; true for no elements.")
#undef TENON_REDUCTION

}  // namespace op

std::vector<const ir::OpDef*> reduce_ops() {
  return {&op::sum, &op::prod, &op::max, &op::min, &op::any, &op::all};
}

namespace {

// Axes sorted where they are valid; else as given, for inference to refuse with the location.
std::vector<int64_t> resolve(const Axes& axes, size_t rank) {
  std::vector<int64_t> resolved;
  if (!axes) {
    for (size_t i = 0; i < rank; ++i) resolved.push_back(static_cast<int64_t>(i));
    return resolved;
  }
  const auto r = static_cast<int64_t>(rank);
  for (int64_t axis : *axes) {
    if (axis < -r || axis >= r) return *axes;
    resolved.push_back(axis < 0 ? axis + r : axis);
  }
  std::sort(resolved.begin(), resolved.end());
  return resolved;
}

Value reduce(const ir::OpDef& def, const Value& x, const Axes& axes, bool keepdims,
             LocationPtr location) {
  return ir::make(def, {x}, {{"axes", resolve(axes, x.shape().size())}, {"keepdims", keepdims}},
                  std::move(location));
}

}  // namespace

#define TENON_REDUCTION(NAME, OPERAND) \
  Value NAME(const Value& x, const Axes& axes, bool keepdims, LocationPtr location) { \
    return reduce(op::NAME, OPERAND, axes, keepdims, std::move(location)); \
  }
TENON_REDUCTION(sum, x)
TENON_REDUCTION(prod, x)
TENON_REDUCTION(max, x)
TENON_REDUCTION(min, x)
TENON_REDUCTION(any, cast(x, DType::kBool, location))
TENON_REDUCTION(all, cast(x, DType::kBool, location))
#undef TENON_REDUCTION

Value max_or_lowest(const Value& x, const Axes& axes, bool keepdims, LocationPtr location) {
  return ir::make(op::max, {x},
                  {{"axes", resolve(axes, x.shape().size())},
                   {"keepdims", keepdims},
                   {"neutral", true},
                   {"shift", true}},
                  std::move(location));
}

}  // namespace tenon::ops
