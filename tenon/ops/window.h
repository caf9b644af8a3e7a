// Windows of elements: bounds as Python reads them, and starts that are known when a program runs.
// The ops hold first elements, sizes and steps.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"

namespace tenon::ops {

bool certainly_negative(const Dim& d);

struct Range {
  Dim start;
  Dim size;
};

// `bound` of an axis of `dim`: negative bounds count from the end, then all are clamped.
// Raises ValueError [slice_c1] for a step of 0.
Range resolve_range(const SliceBound& bound, const Dim& dim);

// Run-time starts are one 0-d i64 operand for each axis of `axes`: raises TypeError [<op>_starts].
void check_starts(std::string_view op, std::span<const ir::TensorType> starts,
                  const std::vector<int64_t>& axes, size_t rank);
// The first element of a window of `size` by `step` in `dims`: static starts, or clamped operands.
std::vector<int64_t> resolve_starts(const Shape& start, std::span<const Literal> operands,
                                    const std::vector<int64_t>& axes, std::span<const int64_t> dims,
                                    std::span<const int64_t> size, std::span<const int64_t> step);
// The same in a kernel, for the node's attributes start and axes.
Index emit_starts(LowerContext& ctx, const ir::Node& node, size_t first_operand, const Shape& dims,
                  const Shape& size, const std::vector<int64_t>& step);

std::vector<Value> as_i64(std::vector<Value> starts, const LocationPtr& location);
// Axes counted from the front.
std::vector<int64_t> from_front(std::vector<int64_t> axes, size_t rank);

}  // namespace tenon::ops
