// The graph: one node type for everything. Lazy tensors, traced functions, the input of passes and
// the body of a saved program are all this.
//
// A node is an immutable application of an op to values; a value is one result of a node. Nodes own
// their operands, so a graph is its results: everything reachable from them. There are no side
// effects: an op that "writes" returns the new value, and a graph lists which of its parameters
// take a new value at the end (`updates`).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/ir/attrs.h"

namespace tenon::ir {

struct OpDef;
struct Node;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  size_t rank() const { return shape.size(); }
  bool operator==(const TensorType&) const = default;
};
// tensor<["batch", 2], f32>; 0-d: tensor<[], f32>.
std::string str(const TensorType& type);
// f32["batch", 2], as errors and signatures spell it.
std::string brief(const TensorType& type);

// Where in the user's program a node was made. Shared and immutable.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  std::string layer;  // "model.layers.3.attn"; empty outside any layer scope
};
using LocationPtr = std::shared_ptr<const Location>;
// `model.cpp:18 in layer model.layers.3.mlp`; empty for null.
std::string str(const LocationPtr& location);

using NodePtr = std::shared_ptr<const Node>;

struct Value {
  NodePtr node;
  uint32_t index = 0;

  explicit operator bool() const { return node != nullptr; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  bool operator==(const Value&) const = default;
};

struct ValueHash {
  size_t operator()(const Value& v) const {
    return std::hash<const void*>()(v.node.get()) * 31 + v.index;
  }
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> operands;
  Attrs attrs;
  std::vector<TensorType> types;  // of the results
  LocationPtr location;
  uint64_t id = 0;  // creation order; operands always have smaller ids

  ~Node();  // releases long chains without recursion
};

inline const TensorType& Value::type() const { return node->types[index]; }

// Creates a node; infers result types, which checks operands and attributes and raises labelled
// errors carrying `location`, TypeError [<op>_operands] for a wrong number of operands. Attributes
// missing from `attrs` take the op's defaults; unknown ones are InternalErrors.
NodePtr make_node(const OpDef& op, std::vector<Value> operands, Attrs attrs = {},
                  LocationPtr location = nullptr);
// The only result of make_node.
Value make(const OpDef& op, std::vector<Value> operands, Attrs attrs = {},
           LocationPtr location = nullptr);

struct Graph;
using GraphPtr = std::shared_ptr<const Graph>;

// A new value of a parameter at the end of the graph: what a writable boundary is.
struct Update {
  uint32_t param;
  Value value;
};

struct Graph {
  std::string name;
  std::vector<Value> params;  // results of `parameter` nodes, in order
  std::vector<std::string> param_names;
  std::vector<bool> writable;  // per parameter
  std::vector<Value> results;
  std::vector<Update> updates;  // sorted by param, each at most once; only writable parameters
  std::vector<std::string> result_names;  // empty, or one per result

  // Every node reachable from results and updates, and every parameter, in creation order
  // (operands before users).
  std::vector<NodePtr> nodes() const;
  // Results followed by the values of updates: what a call of this graph returns.
  std::vector<Value> outputs() const;
};

// A parameter node of the given type.
Value make_parameter(TensorType type, std::string name, LocationPtr location = nullptr);

// Every graph called from `graph`, directly or not, each once, callees before callers; `graph`
// itself last.
std::vector<GraphPtr> reachable_graphs(const GraphPtr& graph);

}  // namespace tenon::ir
