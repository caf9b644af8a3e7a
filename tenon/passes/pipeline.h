// The compilation pipeline: a list of named passes from a traced graph to a module of kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/ir/verify.h"
#include "tenon/kir/kernel.h"
#include "tenon/passes/explanation.h"
#include "tenon/passes/registers.h"

namespace tenon::passes {

// A graph pass: pure function from module (entry graph; bodies hang on calls) to module.
struct GraphPass {
  std::string_view name;
  std::string_view doc;
  ir::GraphPtr (*run)(const ir::GraphPtr&);
  ir::Stage spec_after;
};
// canonicalize, simplify, fold_constants, cse, dce, inline_bodies, pack_weights, lift_externals, …
// in order.
const std::vector<GraphPass>& graph_passes();

struct PhaseTime {
  std::string name;
  double ms;
};

struct Options {
  std::vector<std::string> skip;  // names of passes left out
  std::string stop_after;         // a graph pass's name: lowering is not run
  bool verify = false;            // run stage specs after each pass
  bool explain = false;           // fill Lowered::explanation
  Registers registers = Registers::kMany;
  std::function<void(std::string_view pass, const ir::GraphPtr&)> print_after;
};

// What lowering produces: a module without images, and its kernels.
struct Lowered {
  ir::GraphPtr graph;                // after the graph passes
  std::vector<ir::GraphPtr> graphs;  // reachable_graphs(graph): what EvalStep::graph indexes
  abi::Module module;                // programs, dims, slots, externals, constants
  std::vector<kir::Kernel> kernels;  // in the order of module.kernels; distinct by canonical text
  std::vector<PhaseTime> times;
  Explanation explanation;
};

// Runs the graph passes only.
ir::GraphPtr run_graph_passes(const ir::GraphPtr& graph, const Options& options = {},
                              std::vector<PhaseTime>* times = nullptr);
// Runs everything: graph passes, fusion, lowering, memory planning.
Lowered lower(const ir::GraphPtr& graph, const Options& options = {});

}  // namespace tenon::passes
