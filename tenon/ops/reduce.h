// What reductions share: result shapes and the loops of their kernels.
#pragma once

#include <functional>
#include <vector>

#include "tenon/ir/op_def.h"
#include "tenon/ops/lower.h"

namespace tenon::ops {

// Elements of the longest run that is summed in the accumulation type before it enters a wider sum:
// short enough that a run of equal values loses a few ulp at most, on four lanes or more where the
// lanes share the run, in one lane where they do not.
inline constexpr int64_t kSumBlock = 1024;
inline constexpr int64_t kLaneSumBlock = 64;

// Result shape: `axes` (sorted, normalised) dropped, or 1.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims);

// Operand index from a result index and the reduced variables (in axis order).
Index operand_index(size_t rank, const std::vector<int64_t>& axes, bool keepdims,
                    std::span<const kir::Val> index, std::span<const kir::Val> reduced);

// The next accumulators from the ones before and the variables of the reduced axes.
using ReduceStep = std::function<std::vector<kir::Val>(std::span<const kir::Val> accumulators,
                                                       std::span<const kir::Val> reduced)>;

struct ReduceNest {
  Shape dims;               // of the reduced axes, outermost first
  bool contiguous = false;  // the last one is the operand's last axis: a vector loop pays
};

// Emits the loops over the reduced axes, outside every loop that `index` does not depend on, and
// returns the accumulators after them. The innermost loop is a vector loop where `contiguous` and
// no vector loop is open there; then each accumulator's `combine` joins the lanes.
std::vector<kir::Val> emit_reduction(LowerContext& ctx, const ReduceNest& nest,
                                     std::span<const kir::Val> index,
                                     std::span<const kir::CarriedSpec> init,
                                     const ReduceStep& step);

// The sum of f32 or f64 terms, from 0: runs of at most kSumBlock terms (kLaneSumBlock where a lane
// sums alone) in their own type, the sums of runs in f64, the whole rounded to the type of the
// terms.
kir::Val emit_float_sum(LowerContext& ctx, const ReduceNest& nest, std::span<const kir::Val> index,
                        kir::Type type,
                        const std::function<kir::Val(std::span<const kir::Val> reduced)>& term);

// The neutral element and the combination of max (or min) in an arithmetic type.
kir::Val extreme_start(kir::Builder& b, DType acc, bool max);
kir::Combine extreme_combine(DType acc, bool max);

// ValueError [<op>_empty] when one of `axes` of `shape` certainly has no elements.
void refuse_empty(std::string_view op, const Shape& shape, const std::vector<int64_t>& axes);
// The same while running: a kernel check where the sizes reduced, `dims`, are not known to be
// positive, unless there are no `results`.
void check_not_empty(kir::Builder& b, const Shape& dims, const Shape& results);

}  // namespace tenon::ops
