#include <mutex>
#include <unordered_map>

#include "tenon/frontend/trace.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/op_def.h"

namespace tenon {
namespace {

// Evaluation turns nodes that are still held elsewhere into constants, so it happens one at a time.
std::mutex evaluating;

runtime::Array fresh_array(const Literal& literal) {
  runtime::Array array = runtime::Array::empty(literal.dtype(), literal.dims());
  if (literal.bytes() > 0) std::memcpy(array.mutable_data(), literal.data(), literal.bytes());
  return array;
}

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
  Known known;
  for (const ir::NodePtr& node : nodes) known[node.get()] = evaluate_node(*node, known);
  for (size_t i = 0; i < lazy.size(); ++i) {
    const ir::Value& value = graph.results[i];
    Literal& literal = known.at(value.node.get())[value.index];
    lazy[i]->array = fresh_array(literal);
    literal = lazy[i]->array.to_literal();
    if (value.node->types.size() > 1) lazy[i]->value = {};
  }
  graph.results.clear();
  const auto references = count_references(nodes);
  std::vector<ir::Value> released;
  for (const ir::NodePtr& node : nodes) {
    if (node->op->is(ir::kLeaf) || node->types.size() != 1) continue;
    if (node.use_count() <= references.at(node.get())) continue;
    become_constant(node, known.at(node.get())[0], released);
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
  evaluate({&state});
  std::lock_guard lock(evaluating);
  if (state.value) {
    if (state.value.node.use_count() > 1 && state.value.node->op == &ir::kConstant) {
      const Literal shared = state.array.to_literal();
      Literal copy(shared.dtype(), shared.dims());
      if (shared.bytes() > 0) std::memcpy(copy.mutable_data(), shared.data(), shared.bytes());
      const_cast<ir::Node&>(*state.value.node).attrs = {{"value", std::move(copy)}};
    }
    state.value = {};
  }
  return state.array;
}

}  // namespace tenon
