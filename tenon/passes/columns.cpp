#include "tenon/passes/columns.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

constexpr int64_t kNarrowest = 8;    // fewer neighbouring columns do not fill vectors
constexpr int64_t kTallest = 16384;  // elements; taller columns do not stay in the second cache
constexpr int64_t kStrip = 16;       // columns that a thread takes at least
constexpr int64_t kFewStrips = 4;    // fewer than this do not keep threads busy
constexpr int64_t kManyElements = 65536;
constexpr size_t kMostSeen = 64;  // operations between the reader and the reduction

bool is_walked(const std::vector<int>& walked, size_t axis) {
  return std::binary_search(walked.begin(), walked.end(), static_cast<int>(axis));
}

bool keeps_elements(const ir::Node& node) {
  return node.op->is(ir::kElementwise) || node.op->name == "broadcast_to" || is_unit_reshape(node);
}

// Whether lanes run along an axis that is not walked.
bool has_lanes(const Shape& shape, const std::vector<int>& walked) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != Dim(1)) return !is_walked(walked, i);
  }
  return false;
}

bool pays(const Shape& shape, const std::vector<int>& walked) {
  Dim lanes = 1;
  for (size_t i = shape.size(); i-- > 0 && !is_walked(walked, i);) lanes = lanes * shape[i];
  const Dim height = column_height(shape, walked);
  if (lanes.upper_bound() < kNarrowest || height.lower_bound() > kTallest) return false;
  Dim columns = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_walked(walked, i)) columns = columns * shape[i];
  }
  const bool few = columns.upper_bound() < kFewStrips * kStrip;
  return !few || (columns * height).upper_bound() < kManyElements;
}

}  // namespace

std::optional<std::vector<int>> column_axes(const ir::Value& value, const Shape& shape) {
  std::optional<std::vector<int>> axes;
  std::vector<ir::Value> stack{value};
  std::unordered_set<const ir::Node*> seen;
  while (!stack.empty()) {
    const ir::Node& node = *stack.back().node;
    stack.pop_back();
    if (!seen.insert(&node).second) continue;
    if (seen.size() > kMostSeen) return std::nullopt;
    if (node.op->is(ir::kReduction)) {
      if (node.operands[0].shape() != shape) continue;
      if (axes && *axes != reduced_axes(node)) return std::nullopt;
      axes = reduced_axes(node);
    } else if (keeps_elements(node) && node.types[0].shape != shape) {
      stack.insert(stack.end(), node.operands.begin(), node.operands.end());
    }
  }
  if (!axes || axes->empty() || !has_lanes(shape, *axes) || !pays(shape, *axes)) {
    return std::nullopt;
  }
  return axes;
}

bool reduces_columns(const ir::Node& node, const Shape& shape, const std::vector<int>& walked) {
  return node.op->is(ir::kReduction) && node.types.size() == 1 &&
         node.operands[0].shape() == shape && reduced_axes(node) == walked;
}

std::vector<int> loop_order(const Shape& shape, const std::vector<int>& walked) {
  std::vector<int> order;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_walked(walked, i)) order.push_back(static_cast<int>(i));
  }
  order.insert(order.end(), walked.begin(), walked.end());
  return order;
}

Dim column_height(const Shape& shape, const std::vector<int>& walked) {
  Dim height = 1;
  for (int axis : walked) height = height * shape[static_cast<size_t>(axis)];
  return height;
}

}  // namespace tenon::passes
