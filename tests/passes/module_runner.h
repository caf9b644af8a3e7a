// Runs a lowered module on host memory through the kernel IR's reference evaluator: what the
// run-time does, without machine code. Memory of temporaries is poisoned outside its lifetime.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/base/literal.h"
#include "tenon/passes/pipeline.h"

namespace tenon::passes_test {

// A graph of one parameter and one result.
ir::GraphPtr graph_of(const ir::Value& x, const ir::Value& result);

using Externals = std::map<std::string, Literal>;

// `graph` is what was lowered. Returns what interp::run(graph) returns: results, then the new
// values of updates. Raises IndexError for a failed kernel check.
std::vector<Literal> run_module(const passes::Lowered& lowered, const ir::Graph& graph,
                                std::span<const Literal> arguments,
                                const Externals& externals = {});

}  // namespace tenon::passes_test
