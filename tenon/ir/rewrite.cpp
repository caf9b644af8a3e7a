#include "tenon/ir/rewrite.h"

#include <algorithm>

#include "tenon/ir/op_def.h"

namespace tenon::ir {
namespace {

std::vector<Value> results_of(const NodePtr& node) {
  std::vector<Value> values;
  for (uint32_t i = 0; i < node->types.size(); ++i) values.push_back({node, i});
  return values;
}

void map_results(ValueMap& map, const NodePtr& node, const std::vector<Value>& values) {
  check_internal(values.size() == node->types.size(), "a rewrite replaces every result");
  for (uint32_t i = 0; i < values.size(); ++i) map[{node, i}] = values[i];
}

Value mapped(const ValueMap& map, const Value& value) {
  auto it = map.find(value);
  return it == map.end() ? value : it->second;
}

// `node` over new operands: itself when they are the old ones.
NodePtr rebuilt(const NodePtr& node, std::vector<Value> operands) {
  if (operands == node->operands) return node;
  return make_node(*node->op, std::move(operands), node->attrs, node->location);
}

}  // namespace

GraphPtr rewrite(const GraphPtr& graph, const NodeRewrite& rewrite) {
  ValueMap map;
  bool changed = false;
  std::vector<Value> operands;
  for (const NodePtr& node : graph->nodes()) {
    if (node->op == &kParameter) continue;
    operands.clear();
    for (const Value& operand : node->operands) operands.push_back(mapped(map, operand));
    if (auto values = rewrite(*node, operands)) {
      changed = changed || *values != results_of(node);
      map_results(map, node, *values);
      continue;
    }
    NodePtr next = rebuilt(node, operands);
    if (next == node) continue;
    changed = true;
    map_results(map, node, results_of(next));
  }
  if (!changed) return graph;
  Graph next = *graph;
  for (Value& value : next.results) value = mapped(map, value);
  for (Update& update : next.updates) update.value = mapped(map, update.value);
  return std::make_shared<const Graph>(std::move(next));
}

GraphPtr rewrite_module(const GraphPtr& graph,
                        const std::function<GraphPtr(const GraphPtr&)>& pass) {
  std::unordered_map<const Graph*, GraphPtr> done;
  auto relink = [&done](const Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
    Attrs attrs = node.attrs;
    bool changed = false;
    for (const auto& [name, value] : node.attrs.items()) {
      const auto* callee = std::get_if<GraphPtr>(&value);
      if (callee == nullptr || done.at(callee->get()) == *callee) continue;
      attrs.set(name, done.at(callee->get()));
      changed = true;
    }
    if (!changed) return std::nullopt;
    return results_of(
        make_node(*node.op, {operands.begin(), operands.end()}, std::move(attrs), node.location));
  };
  for (const GraphPtr& body : reachable_graphs(graph)) {
    done[body.get()] = pass(rewrite(body, relink));
  }
  return done.at(graph.get());
}

std::vector<Value> inline_graph(const Graph& graph, std::span<const Value> arguments,
                                const std::string& prefix) {
  check_internal(arguments.size() == graph.params.size(), "one argument per parameter");
  ValueMap map;
  for (size_t i = 0; i < arguments.size(); ++i) map[graph.params[i]] = arguments[i];
  std::vector<Value> operands;
  for (const NodePtr& node : graph.nodes()) {
    if (node->op == &kParameter) continue;
    Attrs attrs = node->attrs;
    if (node->op == &kConstantExternal && attrs.b("relative")) {
      attrs.set("name", prefix + attrs.s("name"));
    } else if (node->op == &kCall) {
      attrs.set("prefix", prefix + attrs.s("prefix"));
    }
    operands.clear();
    for (const Value& operand : node->operands) operands.push_back(mapped(map, operand));
    const bool same = operands == node->operands && attrs == node->attrs;
    NodePtr copy = same ? node : make_node(*node->op, operands, std::move(attrs), node->location);
    map_results(map, node, results_of(copy));
  }
  std::vector<Value> outputs = graph.outputs();
  for (Value& value : outputs) value = mapped(map, value);
  return outputs;
}

}  // namespace tenon::ir
