#include <algorithm>
#include <limits>
#include <numeric>

#include "tenon/base/check_code.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/reduce.h"

namespace tenon::ops {

using kir::Builder;
using kir::CarriedSpec;
using kir::LoopSpec;
using kir::Op;
using kir::Type;
using kir::Val;

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keepdims) result.push_back(1);
  }
  return result;
}

Index operand_index(size_t rank, const std::vector<int64_t>& axes, bool keepdims,
                    std::span<const Val> index, std::span<const Val> reduced) {
  Index at(rank);
  size_t next_kept = 0;
  size_t next_reduced = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      at[i] = reduced[next_reduced++];
      if (keepdims) ++next_kept;
    } else {
      at[i] = index[next_kept++];
    }
  }
  return at;
}

namespace {

int home_depth(LowerContext& ctx, std::span<const Val> index) {
  int depth = ctx.predicate_depth();
  for (Val v : index) depth = std::max(depth, ctx.builder().depth_of(v));
  return depth;
}

LoopSpec inner_spec(bool vector, const Dim& count) {
  return {.vector = vector, .multiple = vector ? std::max<int64_t>(count.known_divisor(), 1) : 1};
}

std::vector<CarriedSpec> from_values(std::span<const Val> values) {
  std::vector<CarriedSpec> carried;
  for (Val v : values) carried.push_back({v});
  return carried;
}

// Loops over dims[level …]; `leaf` emits the innermost one.
std::vector<Val> emit_nest(Builder& b, const Shape& dims, std::vector<Val>& reduced,
                           std::span<const Val> accumulators,
                           const std::function<std::vector<Val>(std::span<const Val>)>& leaf) {
  const size_t level = reduced.size();
  if (level + 1 >= dims.size()) return leaf(accumulators);
  const std::vector<CarriedSpec> carried = from_values(accumulators);
  return b.loop(b.i64(0), b.dim(dims[level]), {}, carried,
                [&](Val var, std::span<const Val> in) -> std::vector<Val> {
                  reduced.push_back(var);
                  std::vector<Val> next = emit_nest(b, dims, reduced, in, leaf);
                  reduced.pop_back();
                  return next;
                });
}

std::vector<Val> with_last(const std::vector<Val>& reduced, Val var) {
  std::vector<Val> all = reduced;
  all.push_back(var);
  return all;
}

}  // namespace

std::vector<Val> emit_reduction(LowerContext& ctx, const ReduceNest& nest,
                                std::span<const Val> index, std::span<const CarriedSpec> init,
                                const ReduceStep& step) {
  Builder& b = ctx.builder();
  std::vector<Val> start;
  for (const CarriedSpec& spec : init) start.push_back(spec.init);
  if (nest.dims.empty()) return step(start, {});
  const int depth = home_depth(ctx, index);
  std::vector<Val> result;
  b.at_depth(depth, [&] {
    const bool vector = nest.contiguous && !b.in_vector_loop();
    const Dim& count = nest.dims.back();
    std::vector<Val> reduced;
    result = emit_nest(b, nest.dims, reduced, start, [&](std::span<const Val> accumulators) {
      std::vector<CarriedSpec> carried = from_values(accumulators);
      for (size_t i = 0; i < carried.size(); ++i) carried[i].combine = init[i].combine;
      return b.loop(
          b.i64(0), b.dim(count), inner_spec(vector, count), carried,
          [&](Val var, std::span<const Val> in) { return step(in, with_last(reduced, var)); });
    });
  });
  return result;
}

namespace {

using Term = std::function<Val(std::span<const Val> reduced)>;

// The sum of terms lo ≤ k < hi of the innermost axis, in the type of the terms.
Val emit_run_sum(Builder& b, Val lo, Val hi, const LoopSpec& spec, Type type,
                 const std::vector<Val>& reduced, const Term& term) {
  const CarriedSpec carried[] = {{b.constant_float(type, 0), kir::Combine::kAdd}};
  return b.loop(lo, hi, spec, carried, [&](Val var, std::span<const Val> in) -> std::vector<Val> {
    return {b.add(in[0], term(with_last(reduced, var)))};
  })[0];
}

int64_t block_of(bool vector) { return vector ? kSumBlock : kLaneSumBlock; }
bool short_run(const Dim& count, bool vector) { return count.upper_bound() <= block_of(vector); }

Val widen(Builder& b, Val v) {
  return v->type == Type::kF64 ? v : b.convert(Op::kFExt, Type::kF64, v);
}

// wide + the sum over the innermost axis, run by run.
Val emit_blocked(Builder& b, Val wide, const Dim& count, bool vector, Type type,
                 const std::vector<Val>& reduced, const Term& term) {
  if (short_run(count, vector)) {
    const Val run =
        emit_run_sum(b, b.i64(0), b.dim(count), inner_spec(vector, count), type, reduced, term);
    return b.add(wide, widen(b, run));
  }
  const int64_t block = block_of(vector);
  const bool even = count.known_divisor() % block == 0;
  const CarriedSpec carried[] = {{wide}};
  const LoopSpec outer{.step = block};
  return b.loop(b.i64(0), b.dim(count), outer, carried,
                [&](Val lo, std::span<const Val> in) -> std::vector<Val> {
                  Val hi = b.add(lo, b.i64(block));
                  if (!even) hi = b.binary(Op::kSMin, hi, b.dim(count));
                  LoopSpec spec = inner_spec(vector, count);
                  if (vector) spec.multiple = std::gcd(spec.multiple, block);
                  const Val run = emit_run_sum(b, lo, hi, spec, type, reduced, term);
                  return {b.add(in[0], widen(b, run))};
                })[0];
}

}  // namespace

Val emit_float_sum(LowerContext& ctx, const ReduceNest& nest, std::span<const Val> index, Type type,
                   const Term& term) {
  Builder& b = ctx.builder();
  if (nest.dims.empty()) return term({});
  Val result = nullptr;
  b.at_depth(home_depth(ctx, index), [&] {
    const bool vector = nest.contiguous && !b.in_vector_loop();
    const Dim& count = nest.dims.back();
    if (nest.dims.size() == 1 && short_run(count, vector)) {
      result = emit_run_sum(b, b.i64(0), b.dim(count), inner_spec(vector, count), type, {}, term);
      return;
    }
    const std::vector<Val> start{b.constant_float(Type::kF64, 0)};
    std::vector<Val> reduced;
    const Val wide =
        emit_nest(b, nest.dims, reduced, start, [&](std::span<const Val> in) -> std::vector<Val> {
          return {emit_blocked(b, in[0], count, vector, type, reduced, term)};
        })[0];
    result = type == Type::kF64 ? wide : b.convert(Op::kFTrunc, type, wide);
  });
  return result;
}

Val extreme_start(Builder& b, DType acc, bool max) {
  const Type type = kir::type_of(acc);
  if (is_float(acc)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return b.constant_float(type, max ? -infinity : infinity);
  }
  if (acc == DType::kBool) return b.boolean(!max);
  if (is_unsigned(acc)) return b.constant_int(type, max ? 0 : -1);
  const int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - kir::bits(type));
  return b.constant_int(type, max ? lowest : ~lowest);
}

kir::Combine extreme_combine(DType acc, bool max) {
  using C = kir::Combine;
  if (is_float(acc)) return max ? C::kFMax : C::kFMin;
  if (acc == DType::kBool) return max ? C::kOr : C::kAnd;
  if (is_unsigned(acc)) return max ? C::kUMax : C::kUMin;
  return max ? C::kSMax : C::kSMin;
}

void refuse_empty(std::string_view op, const Shape& shape, const std::vector<int64_t>& axes) {
  for (int64_t axis : axes) {
    const Dim& dim = shape[static_cast<size_t>(axis)];
    if (!dim.is_static() || dim.value() != 0) continue;
    throw ValueError(fmt::format("{}: axis {} of {} has no elements", op, axis, str(shape)),
                     {.label = fmt::format("{}_empty", op)});
  }
}

void check_not_empty(Builder& b, const Shape& dims, const Shape& results) {
  const Dim count = product(results);
  for (const Dim& dim : dims) {
    if (dim.lower_bound() > 0) continue;
    // Outside of all loops: those around may not run.
    b.at_depth(0, [&] {
      Val fine = b.cmp(kir::Pred::kSGt, b.dim(dim), b.i64(0));
      if (count.lower_bound() <= 0) {
        fine = b.binary(kir::Op::kOr, fine, b.cmp(kir::Pred::kEq, b.dim(count), b.i64(0)));
      }
      b.check(fine, kCheckEmptyReduction);
    });
  }
}

}  // namespace tenon::ops
