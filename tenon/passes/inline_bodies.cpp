#include "tenon/passes/inline_bodies.h"

#include <unordered_map>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"

namespace tenon::passes {
namespace {

constexpr size_t kTiny = 8;  // operations

std::unordered_map<const ir::Graph*, int> count_calls(const ir::GraphPtr& graph) {
  std::unordered_map<const ir::Graph*, int> calls;
  for (const ir::GraphPtr& body : ir::reachable_graphs(graph)) {
    for (const ir::NodePtr& node : body->nodes()) {
      if (node->op == &ir::kCall) ++calls[node->attrs.get<ir::GraphPtr>("callee").get()];
    }
  }
  return calls;
}

}  // namespace

ir::GraphPtr inline_bodies(const ir::GraphPtr& graph) {
  const auto calls = count_calls(graph);
  // By body as it was and as it is after its own calls were inlined.
  std::unordered_map<const ir::Graph*, bool> chosen;
  for (const ir::GraphPtr& body : ir::reachable_graphs(graph)) {
    auto it = calls.find(body.get());
    const bool once = it != calls.end() && it->second == 1;
    chosen[body.get()] = once || body->nodes().size() - body->params.size() <= kTiny;
  }
  std::unordered_map<const ir::Graph*, ir::GraphPtr> done;
  for (const ir::GraphPtr& body : ir::reachable_graphs(graph)) {
    done[body.get()] = ir::rewrite(
        body,
        [&](const ir::Node& node,
            std::span<const ir::Value> operands) -> std::optional<std::vector<ir::Value>> {
          if (node.op != &ir::kCall) return std::nullopt;
          const auto callee = node.attrs.get<ir::GraphPtr>("callee");
          const ir::GraphPtr& now = done.at(callee.get());
          const std::string& prefix = node.attrs.s("prefix");
          if (chosen.at(callee.get())) return ir::inline_graph(*now, operands, prefix);
          if (now == callee) return std::nullopt;
          return ir::make_call(now, {operands.begin(), operands.end()}, prefix, node.location);
        });
  }
  return done.at(graph.get());
}

}  // namespace tenon::passes
