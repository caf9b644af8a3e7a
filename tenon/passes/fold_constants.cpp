#include "tenon/passes/fold_constants.h"

#include <algorithm>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"

namespace tenon::passes {
namespace {

using ir::Value;

constexpr int64_t kSmall = 4096;
constexpr int64_t kSmallLeaf = 64;
constexpr int64_t kLargestMoved = int64_t{1} << 22;

bool concrete(const ir::Node& node) {
  for (const ir::TensorType& type : node.types) {
    if (!is_static(type.shape)) return false;
  }
  return std::all_of(node.attrs.items().begin(), node.attrs.items().end(), [](const auto& item) {
    const auto* shape = std::get_if<Shape>(&item.second);
    return shape == nullptr || is_static(*shape);
  });
}

std::vector<ir::ConcreteType> concrete_types(const ir::Node& node) {
  std::vector<ir::ConcreteType> types;
  for (const ir::TensorType& type : node.types) {
    types.push_back({type.dtype, static_dims(type.shape)});
  }
  return types;
}

int64_t elements(const ir::Node& node) {
  int64_t count = 0;
  for (const ir::TensorType& type : node.types) {
    count = std::max(count, element_count(static_dims(type.shape)));
  }
  return count;
}

// The value of a constant, or of a small leaf such as an index ramp.
std::optional<Literal> known_value(const Value& value) {
  const ir::Node& node = *value.node;
  if (node.op == &ir::kConstant) return node.attrs.get<Literal>("value");
  if (node.op->is(ir::kStructural) || !node.op->is(ir::kLeaf) || !concrete(node)) {
    return std::nullopt;
  }
  if (elements(node) > kSmallLeaf) return std::nullopt;
  return node.op->eval({node.attrs, {}, concrete_types(node)})[value.index];
}

bool worth_folding(const ir::Node& node, const std::vector<Literal>& operands) {
  const int64_t count = elements(node);
  if (count <= kSmall) return true;
  int64_t largest = 0;
  for (const Literal& operand : operands) largest = std::max(largest, operand.count());
  return node.op->is(ir::kMovement) && count <= largest && count <= kLargestMoved;
}

std::optional<std::vector<Value>> fold(const ir::Node& node, std::span<const Value> operands) {
  if (operands.empty() || node.op->is(ir::kStructural) || node.op->eval == nullptr) {
    return std::nullopt;
  }
  // A broadcast scalar is the canonical form of equal elements.
  if (node.op->name == "broadcast_to" || !concrete(node)) return std::nullopt;
  std::vector<Literal> values;
  for (const Value& operand : operands) {
    std::optional<Literal> value = known_value(operand);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  if (!worth_folding(node, values)) return std::nullopt;
  try {
    std::vector<Value> results;
    for (Literal& literal : node.op->eval({node.attrs, values, concrete_types(node)})) {
      results.push_back(ir::make_constant(std::move(literal), node.location));
    }
    return results;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

ir::GraphPtr fold_constants(const ir::GraphPtr& graph) { return ir::rewrite(graph, fold); }

}  // namespace tenon::passes
