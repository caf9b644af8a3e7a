#include "tenon/passes/externals.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/base/hash.h"
#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ir/text.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using ir::Value;

constexpr int64_t kSmallBytes = 1 << 16;

// Which values of a graph are computed from externals (and constants) alone and worth keeping.
class ExternalAnalysis {
 public:
  explicit ExternalAnalysis(const ir::Graph& graph) {
    for (const ir::NodePtr& node : graph.nodes()) {
      if (node->op == &ir::kConstantExternal) {
        external_bytes_[node.get()] = bytes(*node);
      } else if (node->op == &ir::kConstant) {
        constants_.insert(node.get());
      } else if (node->op->is(ir::kStructural)) {
        continue;
      } else if (is_made_of_constants(*node)) {
        constants_.insert(node.get());
      } else if (std::optional<int64_t> below = operand_bytes(*node)) {
        external_bytes_[node.get()] = *below;
      }
    }
  }

  bool is_external(const Value& value) const { return external_bytes_.count(value.node.get()) > 0; }

  // The external values that other nodes or outputs read, in order of nodes. An operation that
  // would need much more memory than what it reads is left with its readers.
  std::vector<Value> frontier(const ir::Graph& graph) {
    std::unordered_set<Value, ir::ValueHash> wanted;
    for (const Value& value : graph.outputs()) want(value, wanted);
    for (const ir::NodePtr& node : graph.nodes()) {
      if (external_bytes_.count(node.get()) > 0) continue;
      for (const Value& operand : node->operands) want(operand, wanted);
    }
    std::vector<Value> ordered(wanted.begin(), wanted.end());
    std::sort(ordered.begin(), ordered.end(), [](const Value& a, const Value& b) {
      return std::pair(a.node->id, a.index) < std::pair(b.node->id, b.index);
    });
    return ordered;
  }

 private:
  static int64_t bytes(const ir::Node& node) {
    int64_t total = 0;
    for (const ir::TensorType& type : node.types) {
      const Dim count = product(type.shape);
      if (!count.is_static()) return DimRange::kInf;
      total += count.value() * static_cast<int64_t>(size_of(type.dtype));
    }
    return total;
  }

  bool is_made_of_constants(const ir::Node& node) const {
    return !node.operands.empty() &&
           std::all_of(node.operands.begin(), node.operands.end(), [&](const Value& operand) {
             return constants_.count(operand.node.get()) > 0;
           });
  }

  // Of a node whose operands are external and constant.
  std::optional<int64_t> operand_bytes(const ir::Node& node) const {
    if (node.operands.empty()) return std::nullopt;
    int64_t total = 0;
    for (const Value& operand : node.operands) {
      if (constants_.count(operand.node.get()) > 0) continue;
      auto it = external_bytes_.find(operand.node.get());
      if (it == external_bytes_.end()) return std::nullopt;
      total += it->second;
    }
    return total;
  }

  bool worth_keeping(const ir::Node& node) const {
    const int64_t own = bytes(node);
    const int64_t below = external_bytes_.at(&node);
    return own <= kSmallBytes || own <= below + below / 4 || is_packing(node);
  }

  void want(const Value& value, std::unordered_set<Value, ir::ValueHash>& wanted) {
    std::vector<Value> stack{value};
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      if (!is_external(at)) continue;
      if (at.node->op == &ir::kConstantExternal || worth_keeping(*at.node)) {
        wanted.insert(at);
      } else {
        stack.insert(stack.end(), at.node->operands.begin(), at.node->operands.end());
      }
    }
  }

  std::unordered_set<const ir::Node*> constants_;  // and what is computed from them alone
  // Externals below each external value: bytes of them together.
  std::unordered_map<const ir::Node*, int64_t> external_bytes_;
};

// The graph with `values` replaced by new parameters after its own.
ir::GraphPtr with_parameters(const ir::GraphPtr& graph, const std::vector<Value>& values) {
  ir::Graph next = *graph;
  ir::ValueMap replaced;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string name = fmt::format("external.{}", i);
    Value parameter = ir::make_parameter(values[i].type(), name, values[i].node->location);
    replaced[values[i]] = parameter;
    next.params.push_back(parameter);
    next.param_names.push_back(name);
    next.writable.push_back(false);
  }
  auto grown = std::make_shared<const ir::Graph>(std::move(next));
  return ir::rewrite(grown,
                     [&](const ir::Node& node,
                         std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       std::vector<Value> results;
                       bool found = false;
                       ir::NodePtr kept;
                       for (uint32_t i = 0; i < node.types.size(); ++i) {
                         auto it =
                             std::find_if(values.begin(), values.end(), [&](const Value& value) {
                               return value.node.get() == &node && value.index == i;
                             });
                         if (it != values.end()) {
                           results.push_back(replaced.at(*it));
                           found = true;
                           continue;
                         }
                         if (kept == nullptr) {
                           kept = ir::make_node(*node.op, {operands.begin(), operands.end()},
                                                node.attrs, node.location);
                         }
                         results.push_back({kept, i});
                       }
                       if (!found) return std::nullopt;
                       return results;
                     });
}

ir::GraphPtr expressions(const std::vector<Value>& values) {
  ir::Graph graph;
  graph.name = "external";
  graph.results = values;
  return std::make_shared<const ir::Graph>(std::move(graph));
}

}  // namespace

ir::GraphPtr lift_externals(const ir::GraphPtr& graph) {
  struct Lifted {
    ir::GraphPtr body;
    ir::GraphPtr expressions;  // of the extra parameters
  };
  std::unordered_map<const ir::Graph*, Lifted> done;
  for (const ir::GraphPtr& body : ir::reachable_graphs(graph)) {
    ir::GraphPtr linked =
        ir::rewrite(body,
                    [&](const ir::Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                      if (node.op != &ir::kCall) return std::nullopt;
                      const auto callee = node.attrs.get<ir::GraphPtr>("callee");
                      const Lifted& lifted = done.at(callee.get());
                      if (lifted.body == callee) return std::nullopt;
                      std::vector<Value> arguments(operands.begin(), operands.end());
                      const std::string& prefix = node.attrs.s("prefix");
                      for (const Value& value : ir::inline_graph(*lifted.expressions, {}, prefix)) {
                        arguments.push_back(value);
                      }
                      return ir::make_call(lifted.body, std::move(arguments), "", node.location);
                    });
    if (body == graph) return linked;
    const std::vector<Value> values = ExternalAnalysis(*linked).frontier(*linked);
    done[body.get()] = {values.empty() ? linked : with_parameters(linked, values),
                        expressions(values)};
  }
  return graph;
}

SetupSplit split_setup(const ir::GraphPtr& graph) {
  const std::vector<Value> values = ExternalAnalysis(*graph).frontier(*graph);
  SetupSplit split;
  if (values.empty()) {
    split.entry = graph;
    return split;
  }
  // Externals of one name are one argument of the setup program.
  ir::Graph setup;
  setup.name = graph->name + ".setup";
  std::unordered_map<std::string, Value> parameters;
  ir::GraphPtr computed = ir::rewrite(
      expressions(values),
      [&](const ir::Node& node, std::span<const Value>) -> std::optional<std::vector<Value>> {
        if (node.op != &ir::kConstantExternal) return std::nullopt;
        const std::string& name = node.attrs.s("name");
        auto [it, inserted] = parameters.emplace(name, Value());
        if (inserted) {
          it->second = ir::make_parameter(node.types[0], name, node.location);
          split.externals.push_back({name, node.types[0]});
          setup.params.push_back(it->second);
          setup.param_names.push_back(name);
          setup.writable.push_back(false);
        } else if (!(it->second.type() == node.types[0])) {
          throw ValueError(fmt::format("constant_external: {} is used as {} and as {}", name,
                                       ir::brief(it->second.type()), ir::brief(node.types[0])),
                           {.label = "external_type", .location = ir::str(node.location)});
        }
        return {{it->second}};
      });
  setup.results = computed->results;
  // Equal expressions of one external may stand twice: each extra parameter still has one result.
  const bool plain = setup.results == setup.params;
  if (!plain) {
    split.setup = std::make_shared<const ir::Graph>(std::move(setup));
    for (const Value& value : values) {
      split.setup_keys.push_back(to_hex(hash_text(ir::canonical(expressions({value})))));
    }
  }
  split.entry = with_parameters(graph, values);
  return split;
}

}  // namespace tenon::passes
