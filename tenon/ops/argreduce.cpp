// argmax and argmin: the i64 position, along one axis, of the first largest (smallest) element, or
// of the first NaN. Attributes: axes (exactly one), keepdims.
#include <algorithm>
#include <limits>

#include "tenon/ops/checks.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/reduce.h"
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

// <op>_c1: one axis. <op>_empty: it is not certainly empty.

size_t the_axis(std::string_view op, const ir::Attrs& attrs, size_t rank) {
  const auto axes = normalize_axes(op, attrs.ints("axes"), rank);
  if (axes.size() != 1) {
    throw ValueError(fmt::format("{}: takes one axis, got {}", op, axes.size()),
                     {.label = fmt::format("{}_c1", op)});
  }
  return static_cast<size_t>(axes[0]);
}

template <bool kMax>
struct Position {
  static constexpr std::string_view kName = kMax ? "argmax" : "argmin";

  static std::vector<TensorType> infer(const ir::InferArgs& args) {
    check_dtype(args.op, args.in[0].dtype, DTypeClass::kReal);
    const Shape& shape = args.in[0].shape;
    const auto axis = static_cast<int64_t>(the_axis(args.op, args.attrs, shape.size()));
    refuse_empty(args.op, shape, {axis});
    return {{DType::kI64, reduced_shape(shape, {axis}, args.attrs.b("keepdims"))}};
  }

  template <class T>
  static bool better(T candidate, T best) {
    if (elt::is_nan(best)) return false;
    return elt::is_nan(candidate) || (kMax ? candidate > best : candidate < best);
  }

  template <class T>
  static std::vector<Literal> search(const ir::EvalArgs& args, size_t axis) {
    const Literal& x = args.in[0];
    Literal result(DType::kI64, args.out[0].dims);
    const std::vector<int64_t> strides = contiguous_strides(x.dims());
    const int64_t n = x.dims()[axis];
    const int64_t inner = strides[axis];
    T run[kRun];
    for (int64_t r = 0; r < result.count(); ++r) {
      const int64_t first = r / inner * inner * n + r % inner;
      T best{};
      int64_t at = 0;
      for (int64_t k = 0; k < n; k += kRun) {
        const int64_t count = std::min(kRun, n - k);
        read_run(x, first + k * inner, inner, count, run);
        for (int64_t i = 0; i < count; ++i) {
          if (k + i == 0 || better(run[i], best)) {
            best = run[i];
            at = k + i;
          }
        }
      }
      result.as_mutable<int64_t>()[r] = at;
    }
    return {std::move(result)};
  }

  static std::vector<Literal> eval(const ir::EvalArgs& args) {
    const Literal& x = args.in[0];
    const size_t axis = the_axis(kName, args.attrs, x.rank());
    if (element_count(args.out[0].dims) > 0) {
      refuse_empty(kName, Shape(x.dims().begin(), x.dims().end()), {static_cast<int64_t>(axis)});
    }
    switch (lane_of(x.dtype())) {
      case Lane::kF32: return search<float>(args, axis);
      case Lane::kF64: return search<double>(args, axis);
      case Lane::kI64: return search<int64_t>(args, axis);
      case Lane::kU64: return search<uint64_t>(args, axis);
      default: return search<bool>(args, axis);
    }
  }

  // Two loops: the extreme value, then the smallest position that holds it.
  static Val lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
    kir::Builder& b = ctx.builder();
    const Value& x = node.operands[0];
    const size_t rank = x.shape().size();
    const size_t axis = the_axis(kName, node.attrs, rank);
    const DType acc = is_half(x.dtype()) ? DType::kF32 : x.dtype();
    const bool keepdims = node.attrs.b("keepdims");
    const ReduceNest nest{{x.shape()[axis]}, axis + 1 == rank};
    const auto element = [&](std::span<const Val> reduced) {
      const Index at = operand_index(rank, {static_cast<int64_t>(axis)}, keepdims, index, reduced);
      return elt::Sym{&b, to_arith(b, ctx.element(x, at)), acc};
    };
    check_not_empty(b, nest.dims, node.types[0].shape);
    const elt::Sym extreme = extreme_value(ctx, nest, index, acc, element);
    const Val none = b.i64(std::numeric_limits<int64_t>::max());
    const kir::CarriedSpec carried[] = {{none, Combine::kSMin}};
    std::vector<Val> home(index.begin(), index.end());
    home.push_back(extreme.v);
    const auto step = [&](std::span<const Val> in, std::span<const Val> reduced) {
      const elt::Sym v = element(reduced);
      const elt::Sym hit = elt::either(elt::eq(v, extreme), elt::is_nan(v));
      const Val position = b.select(hit.v, reduced[0], none);
      return std::vector<Val>{b.binary(kir::Op::kSMin, in[0], position)};
    };
    return emit_reduction(ctx, nest, home, carried, step)[0];
  }

  template <class Element>
  static elt::Sym extreme_value(LowerContext& ctx, const ReduceNest& nest,
                                std::span<const Val> index, DType acc, const Element& element) {
    kir::Builder& b = ctx.builder();
    const kir::CarriedSpec carried[] = {{extreme_start(b, acc, kMax), extreme_combine(acc, kMax)}};
    const auto step = [&](std::span<const Val> in, std::span<const Val> reduced) {
      const elt::Sym so_far{&b, in[0], acc};
      const elt::Sym v = element(reduced);
      return std::vector<Val>{(kMax ? elt::larger(so_far, v) : elt::smaller(so_far, v)).v};
    };
    return {&b, emit_reduction(ctx, nest, index, carried, step)[0], acc};
  }

  static std::vector<ir::Sample> samples() {
    std::vector<ir::Sample> samples;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!ir::contains(DTypeClass::kReal, dtype)) continue;
      auto add = [&](Shape shape, int64_t axis, bool keepdims) {
        samples.push_back({.in = {{dtype, std::move(shape)}},
                           .attrs = {{"axes", std::vector<int64_t>{axis}}, {"keepdims", keepdims}},
                           .lo = -3,
                           .hi = 3});
      };
      add({5, 19}, 1, false);
      add({"n", 3, 2}, 1, true);
      add({4, 3}, 0, false);
      add({0, 3}, 1, false);
    }
    return samples;
  }

  static ir::OpDef def(std::string_view doc) {
    return {.name = kName,
            .doc = doc,
            .traits = ir::kReduction,
            .min_operands = 1,
            .max_operands = 1,
            .attrs = {{"axes", std::vector<int64_t>{}, true}, {"keepdims", false}},
            .infer = infer,
            .eval = eval,
            .lower = lower};
  }
};

}  // namespace

namespace op {

const ir::OpDef argmax = Position<true>::def(
    "The i64 position of the first largest element along an axis, of the first NaN if there is "
    "one; ValueError for no elements.");
const ir::OpDef argmin = Position<false>::def(
    "The i64 position of the first smallest element along an axis, of the first NaN if there is "
    "one; ValueError for no elements.");
TENON_OP_SAMPLES(argmax, Position<true>::samples)
TENON_OP_SAMPLES(argmin, Position<false>::samples)

}  // namespace op

std::vector<const ir::OpDef*> argreduce_ops() { return {&op::argmax, &op::argmin}; }

namespace {

Value position(const ir::OpDef& def, const Value& x, std::optional<int64_t> axis, bool keepdims,
               const LocationPtr& location) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis) {
    const int64_t a = *axis < 0 && *axis >= -rank ? *axis + rank : *axis;
    return ir::make(def, {x}, {{"axes", std::vector<int64_t>{a}}, {"keepdims", keepdims}},
                    location);
  }
  const Value flat = reshape(x, {product(x.shape())}, location);
  const Value at =
      ir::make(def, {flat}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", false}}, location);
  return keepdims ? reshape(at, Shape(static_cast<size_t>(rank), Dim(1)), location) : at;
}

}  // namespace

Value argmax(const Value& x, std::optional<int64_t> axis, bool keepdims, LocationPtr location) {
  return position(op::argmax, x, axis, keepdims, location);
}
Value argmin(const Value& x, std::optional<int64_t> axis, bool keepdims, LocationPtr location) {
  return position(op::argmin, x, axis, keepdims, location);
}

}  // namespace tenon::ops
