#include "tenon/ir/graph.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/ir/op_def.h"

namespace tenon::ir {

std::string str(const TensorType& type) {
  return fmt::format("tensor<{}, {}>", str(type.shape), name(type.dtype));
}

std::string brief(const TensorType& type) {
  return std::string(name(type.dtype)) + str(type.shape);
}

std::string str(const LocationPtr& location) {
  if (location == nullptr) return "";
  std::string text;
  if (!location->file.empty()) text = fmt::format("{}:{}", location->file, location->line);
  if (!location->layer.empty()) {
    text += (text.empty() ? "layer " : " in layer ") + location->layer;
  }
  return text;
}

// A chain of nodes owns itself link by link; plain destruction would recurse once a node.
Node::~Node() {
  std::vector<Value> dying = std::move(operands);
  while (!dying.empty()) {
    NodePtr node = std::move(dying.back().node);
    dying.pop_back();
    if (node == nullptr || node.use_count() != 1) continue;
    auto& rest = const_cast<Node&>(*node).operands;
    std::move(rest.begin(), rest.end(), std::back_inserter(dying));
    rest.clear();
  }
}

std::vector<NodePtr> Graph::nodes() const {
  std::vector<NodePtr> found;
  std::unordered_set<const Node*> seen;
  auto visit = [&](const NodePtr& node) {
    if (seen.insert(node.get()).second) found.push_back(node);
  };
  for (const Value& value : params) visit(value.node);
  for (const Value& value : results) visit(value.node);
  for (const Update& update : updates) visit(update.value.node);
  for (size_t i = 0; i < found.size(); ++i) {
    const Node& node = *found[i];  // `found` grows, the node stays
    for (const Value& operand : node.operands) visit(operand.node);
  }
  std::sort(found.begin(), found.end(),
            [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; });
  return found;
}

std::vector<Value> Graph::outputs() const {
  std::vector<Value> all = results;
  for (const Update& update : updates) all.push_back(update.value);
  return all;
}

namespace {

std::vector<GraphPtr> callees(const Graph& graph) {
  std::vector<GraphPtr> found;
  for (const NodePtr& node : graph.nodes()) {
    for (const auto& item : node->attrs.items()) {
      if (const auto* callee = std::get_if<GraphPtr>(&item.second)) found.push_back(*callee);
    }
  }
  return found;
}

}  // namespace

std::vector<GraphPtr> reachable_graphs(const GraphPtr& graph) {
  struct Frame {
    GraphPtr graph;
    std::vector<GraphPtr> callees;
    size_t next = 0;
  };
  std::vector<GraphPtr> order;
  std::unordered_set<const Graph*> seen{graph.get()};
  std::vector<Frame> stack;
  stack.push_back({graph, callees(*graph)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.callees.size()) {
      order.push_back(std::move(top.graph));
      stack.pop_back();
      continue;
    }
    GraphPtr callee = top.callees[top.next++];
    if (!seen.insert(callee.get()).second) continue;
    std::vector<GraphPtr> below = callees(*callee);
    stack.push_back({std::move(callee), std::move(below)});
  }
  return order;
}

}  // namespace tenon::ir
