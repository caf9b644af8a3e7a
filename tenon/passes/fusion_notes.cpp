#include "tenon/passes/fusion_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tenon/ir/op_def.h"

namespace tenon::passes {

FusionNotes::FusionNotes(const ir::Graph& graph, bool wanted) : graph_(graph) {
  if (!wanted) return;
  for (const ir::NodePtr& node : graph.nodes()) {
    for (const ir::Value& operand : node->operands) readers_[operand].push_back(node.get());
  }
}

void FusionNotes::apart(const ir::Value& value, std::string_view reason) {
  if (value.node->op->is(ir::kLeaf)) return;
  auto it = readers_.find(value);
  if (it == readers_.end()) return;
  std::vector<std::string_view> names;
  for (const ir::Node* reader : it->second) {
    const std::string_view name = reader->op->name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  text_ += fmt::format("@{} {} → {}: {} in memory, {}\n", graph_.name, value.node->op->name,
                       fmt::join(names, ", "), ir::brief(value.type()), reason);
}

void FusionNotes::apart(const ir::NodePtr& node, Group::Kind kind) {
  if (readers_.empty()) return;
  const std::string op(node->op->name);
  const std::string reason =
      kind == Group::Kind::kMatmul ? "no reader alone takes the product's elements once each"
      : kind == Group::Kind::kHost ? op + " has no kernel and runs through its reference evaluation"
      : kind == Group::Kind::kCall ? "a shared body has kernels of its own"
                                   : op + " is a kernel of its own";
  for (uint32_t i = 0; i < node->types.size(); ++i) apart(ir::Value{node, i}, reason);
}

}  // namespace tenon::passes
