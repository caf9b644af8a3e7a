#include "tenon/ir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/ir/op_def.h"

namespace tenon::ir {
namespace {

[[noreturn]] void broken(const Graph& graph, const std::string& what) {
  throw InternalError(fmt::format("verify: @{}: {}", graph.name, what));
}

[[noreturn]] void broken(const Graph& graph, const Node& node, const std::string& what) {
  throw InternalError(fmt::format("verify: @{}: tn.{}: {}", graph.name, node.op->name, what),
                      {.location = str(node.location)});
}

void verify_boundary(const Graph& graph) {
  const size_t n = graph.params.size();
  if (graph.param_names.size() != n || graph.writable.size() != n) {
    broken(graph, fmt::format("{} parameters, {} names, {} writable flags", n,
                              graph.param_names.size(), graph.writable.size()));
  }
  if (!graph.result_names.empty() && graph.result_names.size() != graph.results.size()) {
    broken(graph,
           fmt::format("{} results, {} names", graph.results.size(), graph.result_names.size()));
  }
  std::unordered_set<std::string> names;
  std::unordered_set<const Node*> nodes;
  for (size_t i = 0; i < n; ++i) {
    const Value& param = graph.params[i];
    if (param.node == nullptr || param.node->op != &kParameter) {
      broken(graph, fmt::format("parameter {} is not a tn.parameter", graph.param_names[i]));
    }
    if (!nodes.insert(param.node.get()).second) {
      broken(graph, fmt::format("parameter {} stands twice", graph.param_names[i]));
    }
    if (!names.insert(graph.param_names[i]).second) {
      broken(graph, fmt::format("two parameters are named {}", graph.param_names[i]));
    }
  }
  for (const Value& value : graph.outputs()) {
    if (value.node == nullptr || value.index >= value.node->types.size()) {
      broken(graph, "an output is not a result of a node");
    }
  }
  for (size_t i = 0; i < graph.updates.size(); ++i) {
    const Update& update = graph.updates[i];
    if (update.param >= n || !graph.writable[update.param]) {
      broken(graph, fmt::format("update {} writes no writable parameter", i));
    }
    if (i > 0 && graph.updates[i - 1].param >= update.param) {
      broken(graph, "updates are not sorted by parameter, each once");
    }
    const TensorType& wanted = graph.params[update.param].type();
    if (update.value.type() == wanted) continue;
    broken(graph,
           fmt::format("update of {} is {}, the parameter {}", graph.param_names[update.param],
                       brief(update.value.type()), brief(wanted)));
  }
}

void verify_node(const Graph& graph, const Node& node) {
  std::vector<TensorType> in;
  for (const Value& operand : node.operands) {
    if (operand.node == nullptr || operand.index >= operand.node->types.size()) {
      broken(graph, node, "an operand is not a result of a node");
    }
    if (operand.node->id >= node.id) broken(graph, node, "an operand is younger than its user");
    in.push_back(operand.type());
  }
  for (const AttrSpec& spec : node.op->attrs) {
    const Attr* attr = node.attrs.find(spec.name);
    if (attr == nullptr || attr->index() != spec.default_value.index()) {
      broken(graph, node, fmt::format("attribute {} is missing or of another kind", spec.name));
    }
  }
  if (node.attrs.items().size() != node.op->attrs.size()) {
    broken(graph, node, "an attribute is not one of the op's");
  }
  std::vector<TensorType> types;
  try {
    types = node.op->infer({node.op->name, in, node.attrs});
  } catch (const Error& error) {
    broken(graph, node, error.message());
  }
  if (types != node.types) broken(graph, node, "the result types are not those of infer()");
}

// Two nodes that compute the same value.
struct SameWork {
  bool operator()(const Node* a, const Node* b) const {
    return a->op == b->op && a->operands == b->operands && a->attrs == b->attrs;
  }
};
struct HashWork {
  size_t operator()(const Node* node) const {
    size_t h = std::hash<const void*>()(node->op) ^ node->attrs.hash();
    for (const Value& operand : node->operands) h = h * 31 + ValueHash()(operand);
    return h;
  }
};

void verify_simplified(const Graph& graph, const std::vector<NodePtr>& nodes) {
  std::unordered_set<const Node*, HashWork, SameWork> seen;
  for (const NodePtr& node : nodes) {
    if (node->op == &kParameter) continue;
    if (!seen.insert(node.get()).second) broken(graph, *node, "the same work stands above");
  }
}

void verify_nodes(const Graph& graph, Stage stage) {
  const std::unordered_set<Value, ValueHash> params(graph.params.begin(), graph.params.end());
  const std::vector<NodePtr> nodes = graph.nodes();
  for (const NodePtr& node : nodes) {
    if (node->op == &kParameter && params.count({node, 0}) == 0) {
      broken(graph, *node,
             fmt::format("{} is a parameter of another graph", node->attrs.s("name")));
    }
    verify_node(graph, *node);
  }
  if (stage == Stage::kSimplified) verify_simplified(graph, nodes);
}

// Graphs hold their callees, so a cycle between bodies cannot be built; two bodies of one name can.
void verify_names(const std::vector<GraphPtr>& graphs) {
  std::unordered_set<std::string> names;
  for (const GraphPtr& graph : graphs) {
    if (!names.insert(graph->name).second) broken(*graph, "two graphs have this name");
  }
}

}  // namespace

void verify(const GraphPtr& graph, Stage stage) {
  const std::vector<GraphPtr> graphs = reachable_graphs(graph);
  verify_names(graphs);
  for (const GraphPtr& body : graphs) {
    verify_boundary(*body);
    verify_nodes(*body, stage);
  }
}

}  // namespace tenon::ir
