#include "tenon/passes/split_reductions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/order.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using ir::Value;
namespace op = ops::op;

constexpr int64_t kFewResults = 16;
constexpr int64_t kManyElements = 65536;
constexpr int64_t kPieces = 64;

// The reductions for which reducing parts and then the partial results is the same operation.
const std::array<const ir::OpDef*, 6> kAssociative = {&op::sum, &op::prod, &op::max,
                                                      &op::min, &op::any,  &op::all};

bool splits(const ir::Node& node) {
  if (std::find(kAssociative.begin(), kAssociative.end(), node.op) == kAssociative.end()) {
    return false;
  }
  const Dim results = product(node.types[0].shape);
  if (!results.is_static() || results.value() == 0 || results.value() >= kFewResults) return false;
  const Dim elements = product(node.operands[0].shape());
  return elements.upper_bound() >= kManyElements && (!elements.is_static() || elements.value() > 0);
}

Value reduce(const ir::Node& like, const Value& x, std::vector<int64_t> axes, bool keepdims) {
  ir::Attrs attrs = like.attrs;
  attrs.set("axes", std::move(axes));
  attrs.set("keepdims", keepdims);
  return ir::make(*like.op, {x}, std::move(attrs), like.location);
}

// `size` elements from `first` along an axis. Both are inside: nothing is clamped, so that sizes
// stay the expressions that they are.
Value part_of(const ir::Node& like, const Value& x, int64_t axis, const Dim& first,
              const Dim& size) {
  Shape starts(x.shape().size(), Dim(0));
  Shape sizes = x.shape();
  starts[static_cast<size_t>(axis)] = first;
  sizes[static_cast<size_t>(axis)] = size;
  return ir::make(
      op::slice, {x},
      {{"start", starts}, {"size", sizes}, {"step", std::vector<int64_t>(x.shape().size(), 1)}},
      like.location);
}

// Reduces one axis of many elements in kPieces equal parts and a rest.
Value reduce_long_axis(const ir::Node& node, const Value& x, int64_t axis) {
  const Dim length = x.shape()[static_cast<size_t>(axis)];
  const Dim part = floor_div(length, Dim(kPieces));
  const Dim even = part * Dim(kPieces);
  const bool rest = !(even == length);
  Value head = rest ? part_of(node, x, axis, Dim(0), even) : x;
  Shape split = head.shape();
  split[static_cast<size_t>(axis)] = Dim(kPieces);
  split.insert(split.begin() + static_cast<ptrdiff_t>(axis) + 1, part);
  Value pieces = reduce(node, ops::reshape(head, split, node.location), {axis + 1}, false);
  if (rest) {
    const bool no_neutral = node.op == &op::max || node.op == &op::min;
    // max and min of nothing raise: the last elements once more instead of a rest that may be
    // empty.
    Dim from = even;
    if (no_neutral) from = dim_max(length - Dim(kPieces), Dim(0));
    Value tail = part_of(node, x, axis, from, length - from);
    tail = reduce(node, tail, {axis}, true);
    pieces = ops::concatenate({pieces, tail}, axis, node.location);
  }
  return reduce(node, pieces, {axis}, true);
}

// argmax or argmin of many elements: the best one of each of kPieces equal parts, then the first of
// the best parts. What fills the last part is never better than what stands before it.
std::optional<Value> split_position(const ir::Node& node) {
  const Value& x = node.operands[0];
  const auto axis = static_cast<int64_t>(reduced_axes(node)[0]);
  const Dim& length = x.shape()[static_cast<size_t>(axis)];
  const Dim results = product(node.types[0].shape);
  if (!length.is_static() || length.value() < kManyElements || !results.is_static() ||
      results.value() >= kFewResults) {
    return std::nullopt;
  }
  const int64_t part = (length.value() + kPieces - 1) / kPieces;
  const bool max = node.op == &op::argmax;
  Value whole = x;
  if (part * kPieces != length.value()) {
    Shape after(x.shape().size(), Dim(0));
    const Shape before = after;
    after[static_cast<size_t>(axis)] = Dim(part * kPieces - length.value());
    Literal worst(x.dtype(), {});
    if (is_float(x.dtype())) {
      const double infinity = std::numeric_limits<double>::infinity();
      worst.set_double(0, max ? -infinity : infinity);
    } else {
      const uint64_t bits = ops::last_bits({x.dtype(), max});
      std::memcpy(worst.mutable_data(), &bits, size_of(x.dtype()));
    }
    whole = ops::pad(x, before, after, ir::make_constant(std::move(worst), node.location),
                     node.location);
  }
  Shape parts = whole.shape();
  parts[static_cast<size_t>(axis)] = Dim(kPieces);
  parts.insert(parts.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(part));
  const Value inside = reduce(node, ops::reshape(whole, parts, node.location), {axis + 1}, false);
  const Value first = ops::iota({Dim(kPieces)}, 0, DType::kI64, node.location);
  Shape along(x.shape().size(), Dim(1));
  along[static_cast<size_t>(axis)] = Dim(kPieces);
  const Value starts = ops::mul(ops::reshape(first, along, node.location),
                                ops::scalar_int(DType::kI64, part, node.location), node.location);
  const Value at = ops::add(inside, starts, node.location);
  const Value best = ops::take_along_axis(x, at, axis, node.location);
  const Value which = reduce(node, best, {axis}, true);
  return ops::reshape(ops::take_along_axis(at, which, axis, node.location), node.types[0].shape,
                      node.location);
}

std::optional<Value> split(const ir::Node& node) {
  if (node.op == &op::argmax || node.op == &op::argmin) return split_position(node);
  if (!splits(node)) return std::nullopt;
  const std::vector<int> axes = reduced_axes(node);
  Value x = node.operands[0];
  const DType dtype = node.types[0].dtype;
  if (is_half(x.dtype()) && (node.op == &op::sum || node.op == &op::prod)) {
    x = ops::cast(x, DType::kF32, node.location);
  }
  // From the inside out: the last axis alone leaves the others for the grid.
  const Dim inner = x.shape()[static_cast<size_t>(axes.back())];
  const Dim outer_elements = floor_div(product(x.shape()), dim_max(inner, Dim(1)));
  Value result;
  if (axes.size() > 1 && outer_elements.lower_bound() >= kPieces) {
    result = reduce(node, x, {axes.back()}, true);
    result = reduce(node, result, std::vector<int64_t>(axes.begin(), axes.end() - 1), true);
  } else if (axes.size() == 1 && x.shape()[static_cast<size_t>(axes[0])].lower_bound() >= kPieces) {
    result = reduce_long_axis(node, x, axes[0]);
  } else {
    return std::nullopt;
  }
  return ops::cast(ops::reshape(result, node.types[0].shape, node.location), dtype, node.location);
}

}  // namespace

ir::GraphPtr split_reductions(const ir::GraphPtr& graph) {
  return ir::rewrite(graph,
                     [](const ir::Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       if (!node.op->is(ir::kReduction)) return std::nullopt;
                       ir::NodePtr now = ir::make_node(*node.op, {operands.begin(), operands.end()},
                                                       node.attrs, node.location);
                       if (auto value = split(*now)) return {{*value}};
                       return std::nullopt;
                     });
}

}  // namespace tenon::passes
