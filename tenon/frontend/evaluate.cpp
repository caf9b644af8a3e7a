#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "tenon/base/recycled.h"
#include "tenon/frontend/engine.h"
#include "tenon/frontend/trace.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/op_def.h"
#include "tenon/ops/ops.h"

namespace tenon {
namespace {

// Evaluation turns nodes that are still held elsewhere into constants, so it happens one at a time.
std::mutex evaluating;

using Known = std::unordered_map<const ir::Node*, std::vector<Literal>>;

std::vector<Literal> evaluate_node(const ir::Node& node, const Known& known) {
  std::vector<Literal> in;
  for (const ir::Value& operand : node.operands) {
    in.push_back(known.at(operand.node.get())[operand.index]);
  }
  return interp::evaluate(node, in);
}

// References to a node from the graph itself; more owners than these hold it for later use.
std::unordered_map<const ir::Node*, long> count_references(const std::vector<ir::NodePtr>& nodes) {
  std::unordered_map<const ir::Node*, long> counts;
  for (const ir::NodePtr& node : nodes) {
    ++counts[node.get()];
    for (const ir::Value& operand : node->operands) ++counts[operand.node.get()];
  }
  return counts;
}

// Later uses of the node find its value instead of computing it again.
void become_constant(const ir::NodePtr& node, Literal value, std::vector<ir::Value>& released) {
  auto& changed = const_cast<ir::Node&>(*node);
  std::move(changed.operands.begin(), changed.operands.end(), std::back_inserter(released));
  changed.operands.clear();
  changed.attrs = {{"value", std::move(value)}};
  changed.op = &ir::kConstant;
}

// Element operations of a graph of known sizes, roughly.
int64_t work_of(const std::vector<ir::NodePtr>& nodes) {
  int64_t work = 0;
  for (const ir::NodePtr& node : nodes) {
    if (node->op == &ir::kConstant) continue;
    int64_t elements = 0;
    for (const ir::Value& operand : node->operands) {
      elements = std::max(elements, product(operand.shape()).value());
    }
    for (const ir::TensorType& type : node->types) {
      elements = std::max(elements, product(type.shape).value());
    }
    if (node->op == &ops::op::matmul && !node->types[0].shape.empty()) {
      elements *= node->types[0].shape.back().value();
    }
    work += elements;
  }
  return work;
}

// Below this the interpreter is done before the compiler has begun.
constexpr int64_t kCompileWork = int64_t{1} << 20;

// The graph with its larger constants as parameters, so that equal work on other data finds its
// kernels in the cache.
std::vector<runtime::Array> evaluate_compiled(const std::vector<ir::NodePtr>& nodes,
                                              const std::vector<ir::Value>& wanted) {
  ir::Graph graph;
  graph.name = "eager";
  ir::ValueMap inside;
  std::vector<runtime::Array> arguments;
  std::vector<runtime::ArgumentSpec> specs;
  for (const ir::NodePtr& node : nodes) {
    if (node->op == &ir::kConstant) {
      if (node->types[0].shape.empty()) continue;
      const std::string name = fmt::format("arg{}", graph.params.size());
      const ir::Value param = ir::make_parameter(node->types[0], name);
      inside[{node, 0}] = param;
      graph.params.push_back(param);
      graph.param_names.push_back(name);
      graph.writable.push_back(false);
      arguments.push_back(runtime::Array::from_literal(node->attrs.get<Literal>("value")));
      specs.push_back({name, node->types[0].dtype, node->types[0].shape, false});
      continue;
    }
    std::vector<ir::Value> operands;
    for (const ir::Value& operand : node->operands) {
      auto it = inside.find(operand);
      operands.push_back(it == inside.end() ? operand : it->second);
    }
    if (operands == node->operands) continue;
    const ir::NodePtr copy = ir::make_node(*node->op, operands, node->attrs, node->location);
    for (uint32_t i = 0; i < node->types.size(); ++i) inside[{node, i}] = {copy, i};
  }
  for (const ir::Value& value : wanted) {
    auto it = inside.find(value);
    graph.results.push_back(it == inside.end() ? value : it->second);
  }
  const auto engine = make_engine(std::make_shared<const ir::Graph>(graph), std::move(specs));
  std::vector<runtime::Array> results;
  engine->run(arguments, results);
  return results;
}

std::vector<runtime::Array> evaluate_interpreted(const std::vector<ir::NodePtr>& nodes,
                                                 const std::vector<ir::Value>& wanted) {
  Known known;
  for (const ir::NodePtr& node : nodes) known[node.get()] = evaluate_node(*node, known);
  std::vector<runtime::Array> results;
  for (const ir::Value& value : wanted) {
    results.push_back(runtime::Array::copy_of(known.at(value.node.get())[value.index]));
  }
  return results;
}

// What is asked for, and every node that is held beyond this graph for later use.
std::vector<ir::Value> wanted_values(const std::vector<ir::NodePtr>& nodes,
                                     const std::vector<ir::Value>& asked) {
  std::vector<ir::Value> wanted = asked;
  const auto references = count_references(nodes);
  std::unordered_set<const ir::Node*> targets;
  for (const ir::Value& value : asked) targets.insert(value.node.get());
  for (const ir::NodePtr& node : nodes) {
    if (node->op->is(ir::kLeaf) || node->types.size() != 1 || targets.count(node.get()) != 0) {
      continue;
    }
    if (node.use_count() > references.at(node.get())) wanted.push_back({node, 0});
  }
  return wanted;
}

void evaluate_locked(const std::vector<TensorState*>& states) {
  ir::Graph graph;
  std::vector<TensorState*> lazy;
  for (TensorState* state : states) {
    if (state->ready) continue;
    lazy.push_back(state);
    graph.results.push_back(state->value);
  }
  if (lazy.empty()) return;
  const std::vector<ir::NodePtr> nodes = graph.nodes();
  const std::vector<ir::Value> wanted = wanted_values(nodes, graph.results);
  const std::vector<runtime::Array> results = work_of(nodes) >= kCompileWork
                                                  ? evaluate_compiled(nodes, wanted)
                                                  : evaluate_interpreted(nodes, wanted);
  std::vector<ir::Value> released;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ir::NodePtr& node = wanted[i].node;
    if (i < lazy.size()) {
      lazy[i]->array = results[i];
      if (node->types.size() > 1) lazy[i]->value = {};
    }
    if (node->types.size() == 1) become_constant(node, results[i].to_literal(), released);
  }
  for (TensorState* state : lazy) state->ready = true;
}

}  // namespace

void evaluate(const std::vector<TensorState*>& states) {
  bool ready = true;
  for (const TensorState* state : states) ready = ready && state->ready;
  if (ready) return;
  std::lock_guard lock(evaluating);
  evaluate_locked(states);
}

runtime::Array& writable_array(const Tensor& tensor) {
  TensorState& state = *tensor.state();
  if (!state.ready) evaluate({&state});
  // Nothing holds the old contents: so it is at every call after the first.
  if (!state.captured && !state.value) return state.array;
  std::lock_guard lock(evaluating);
  if (state.captured.exchange(false)) {
    state.array = state.array.copy();
    state.value = {};
    return state.array;
  }
  if (state.value) {
    if (state.value.node.use_count() > 1 && state.value.node->op == &ir::kConstant) {
      const_cast<ir::Node&>(*state.value.node).attrs = {{"value", state.array.copy().to_literal()}};
    }
    state.value = {};
  }
  return state.array;
}

runtime::Array donate(const Tensor& tensor, const std::shared_ptr<const std::string>& to) {
  TensorState& state = *tensor.state();
  auto donated = std::allocate_shared<const Donated>(
      Recycled<Donated>(), Donated{to, state.array.dtype(), state.array.dims()});
  const bool own = !state.borrowed && state.array.writable();
  runtime::Array taken = own ? writable_array(tensor) : state.array.copy();
  state.donated = std::move(donated);
  state.array = {};
  state.value = {};
  return taken;
}

}  // namespace tenon
