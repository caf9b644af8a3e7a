#include "tenon/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "tenon/ir/rewrite.h"
#include "tenon/ops/registry.h"
#include "tenon/passes/canonicalize.h"
#include "tenon/passes/cse.h"
#include "tenon/passes/externals.h"
#include "tenon/passes/fold_constants.h"
#include "tenon/passes/inline_bodies.h"
#include "tenon/passes/pack_matmul.h"
#include "tenon/passes/plan_program.h"
#include "tenon/passes/propagate_shapes.h"
#include "tenon/passes/simplify.h"
#include "tenon/passes/split_attention.h"
#include "tenon/passes/split_reductions.h"
#include "tenon/passes/split_sorts.h"

namespace tenon::passes {
namespace {

using ir::GraphPtr;
using ir::Stage;

// A pass over one graph, as a pass over a module.
template <GraphPtr (*kPass)(const GraphPtr&)>
GraphPtr every_body(const GraphPtr& graph) {
  return ir::rewrite_module(graph, kPass);
}

GraphPtr tidy(const GraphPtr& graph) {
  return ir::rewrite_module(graph,
                            [](const GraphPtr& body) { return cse(simplify(canonicalize(body))); });
}

class Timer {
 public:
  explicit Timer(std::vector<PhaseTime>* times) : times_(times) {}
  template <class F>
  auto run(std::string_view name, F&& f) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = f();
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    if (times_ != nullptr) times_->push_back({std::string(name), ms.count()});
    return result;
  }

 private:
  std::vector<PhaseTime>* times_;
};

struct Programs {
  ModuleBuilder builder;
  std::unordered_map<const ir::Graph*, BodyContract> contracts;
  Explanation explanation;

  uint32_t plan(const GraphPtr& graph, uint32_t index, ProgramRole role) {
    ProgramPlan plan = plan_program(builder, graph, index, role, contracts);
    builder.programs[graph.get()] = plan.program;
    contracts[graph.get()] = std::move(plan.contract);
    explanation.groups += plan.explanation.groups;
    explanation.apart += plan.explanation.apart;
    return plan.program;
  }

  // Plans `graph` and the bodies that it calls, and adds them to `graphs`.
  uint32_t plan_all(const GraphPtr& graph, ProgramRole role, std::vector<GraphPtr>& graphs) {
    uint32_t program = 0;
    for (const GraphPtr& body : ir::reachable_graphs(graph)) {
      if (builder.programs.count(body.get()) > 0) continue;
      const uint32_t index = static_cast<uint32_t>(graphs.size());
      graphs.push_back(body);
      program = plan(body, index, body == graph ? role : ProgramRole::kBody);
    }
    return program;
  }
};

}  // namespace

const std::vector<GraphPass>& graph_passes() {
  static const std::vector<GraphPass> passes = {
      {"canonicalize", "One form for movement, casts and operand order.", every_body<canonicalize>,
       Stage::kTraced},
      {"simplify", "Algebra that keeps every bit.", every_body<simplify>, Stage::kTraced},
      {"fold_constants", "Evaluates what depends on constants alone.", every_body<fold_constants>,
       Stage::kTraced},
      {"propagate_shapes", "Sizes as static as what is known of them.",
       every_body<propagate_shapes>, Stage::kTraced},
      {"cse", "Equal nodes become one.", every_body<cse>, Stage::kTraced},
      {"inline_bodies", "Bodies called once, and tiny ones, join their callers.", inline_bodies,
       Stage::kTraced},
      {"split_reductions", "Reductions of much to little in two stages.",
       every_body<split_reductions>, Stage::kTraced},
      {"split_attention", "Attention of few rows to many keys in pieces.",
       every_body<split_attention>, Stage::kTraced},
      {"split_sorts", "Long rows sorted in pieces, and merged.", every_body<split_sorts>,
       Stage::kTraced},
      {"pack_matmul", "Matrix products over packed operands.", every_body<pack_matmul>,
       Stage::kTraced},
      {"lift_externals", "External data become parameters of shared bodies.", lift_externals,
       Stage::kTraced},
      {"tidy", "canonicalize, simplify and cse once more, over what the passes before made.", tidy,
       Stage::kSimplified},
  };
  return passes;
}

GraphPtr run_graph_passes(const GraphPtr& graph, const Options& options,
                          std::vector<PhaseTime>* times) {
  ops::register_all();
  Timer timer(times);
  GraphPtr current = graph;
  for (const GraphPass& pass : graph_passes()) {
    const bool skipped =
        std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end();
    if (!skipped) current = timer.run(pass.name, [&] { return pass.run(current); });
    if (options.verify) ir::verify(current, skipped ? Stage::kTraced : pass.spec_after);
    if (options.print_after) options.print_after(pass.name, current);
    if (options.stop_after == pass.name) break;
  }
  return current;
}

Lowered lower(const GraphPtr& graph, const Options& options) {
  Lowered lowered;
  lowered.graph = run_graph_passes(graph, options, &lowered.times);
  if (!options.stop_after.empty()) return lowered;
  Timer timer(&lowered.times);
  const SetupSplit split = timer.run("split_setup", [&] { return split_setup(lowered.graph); });
  Programs programs;
  programs.builder.explain = options.explain;
  programs.builder.registers = options.registers;
  abi::Module& module = programs.builder.module;
  module.entry = timer.run("lower", [&] {
    if (split.setup != nullptr) {
      module.setup = programs.plan_all(split.setup, ProgramRole::kSetup, lowered.graphs);
      module.setup_keys = split.setup_keys;
    }
    return programs.plan_all(split.entry, ProgramRole::kEntry, lowered.graphs);
  });
  for (const ExternalInput& external : split.externals) {
    module.externals.push_back(
        {external.name, external.type.dtype, programs.builder.dims(external.type.shape)});
  }
  lowered.module = std::move(module);
  lowered.kernels = std::move(programs.builder.kernels);
  lowered.explanation = std::move(programs.explanation);
  return lowered;
}

}  // namespace tenon::passes
