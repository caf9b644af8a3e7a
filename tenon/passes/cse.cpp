#include "tenon/passes/cse.h"

#include <unordered_map>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"

namespace tenon::passes {
namespace {

using ir::Value;

size_t hash_of(const ir::Node& node, std::span<const Value> operands) {
  size_t hash = std::hash<const void*>()(node.op) * 31 + node.attrs.hash();
  for (const Value& operand : operands) hash = hash * 1000003 + ir::ValueHash()(operand);
  return hash;
}

std::vector<Value> results_of(const ir::NodePtr& node) {
  std::vector<Value> results;
  for (uint32_t i = 0; i < node->types.size(); ++i) results.push_back({node, i});
  return results;
}

}  // namespace

ir::GraphPtr cse(const ir::GraphPtr& graph) {
  // The representatives are kept alive here: a dropped node's address could come again.
  std::unordered_multimap<size_t, ir::NodePtr> seen;
  return ir::rewrite(graph,
                     [&](const ir::Node& node,
                         std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       const size_t hash = hash_of(node, operands);
                       auto [first, last] = seen.equal_range(hash);
                       for (auto it = first; it != last; ++it) {
                         const ir::Node& other = *it->second;
                         if (other.op == node.op && other.attrs == node.attrs &&
                             std::equal(operands.begin(), operands.end(), other.operands.begin(),
                                        other.operands.end())) {
                           return results_of(it->second);
                         }
                       }
                       ir::NodePtr kept = ir::make_node(
                           *node.op, {operands.begin(), operands.end()}, node.attrs, node.location);
                       seen.emplace(hash, kept);
                       return results_of(kept);
                     });
}

}  // namespace tenon::passes
