// Rewriting graphs. Nodes are immutable, so a pass maps old values to new ones, bottom up.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "tenon/ir/graph.h"

namespace tenon::ir {

using ValueMap = std::unordered_map<Value, Value, ValueHash>;

// Returns the replacement values of `node` (one per result), given its new operands, or nullopt to
// keep it (rebuilt with the new operands when they changed).
using NodeRewrite = std::function<std::optional<std::vector<Value>>(
    const Node& node, std::span<const Value> operands)>;

// Applies `rewrite` to every node in order and returns the new graph (the same pointer when nothing
// changed). Parameters are kept. Bodies of calls are left alone.
GraphPtr rewrite(const GraphPtr& graph, const NodeRewrite& rewrite);

// Applies a graph pass to every reachable body and the graph itself, relinking calls; each body is
// rewritten once.
GraphPtr rewrite_module(const GraphPtr& graph,
                        const std::function<GraphPtr(const GraphPtr&)>& pass);

// Copies `graph` with its parameters replaced by `arguments`; returns outputs(). `relocate` maps
// relative external names to prefix + name.
std::vector<Value> inline_graph(const Graph& graph, std::span<const Value> arguments,
                                const std::string& prefix);

}  // namespace tenon::ir
