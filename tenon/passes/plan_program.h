// From groups to a program: steps in order, memory for every value, lifetimes.
//
// Values share memory where nothing has to move: views, results of a region update whose operand
// dies there, arguments that a body may overwrite, results that a body passes through. A result of
// the program is written by the step that computes it; what cannot be (an argument that is also a
// result, one value that is two results) is copied at the end.
#pragma once

#include <string>

#include "tenon/passes/explanation.h"
#include "tenon/passes/group.h"
#include "tenon/passes/module_builder.h"

namespace tenon::passes {

enum class ProgramRole : uint8_t {
  kEntry,  // results are the graph's; updates are written into the writable arguments
  kBody,   // results are outputs(); may overwrite arguments that a result takes the place of
  kSetup,  // results may be arguments passed through
};

// What a caller must know of a body.
struct BodyContract {
  // For each result: the parameter whose memory it is, or -1.
  std::vector<int> result_parameter;
  // Parameters whose memory is overwritten.
  std::vector<bool> overwrites;
};

struct ProgramPlan {
  uint32_t program = 0;  // index in the module
  BodyContract contract;
  Explanation explanation;  // when ModuleBuilder::explain
};

// Plans `graph`, whose bodies are planned (module.programs, `contracts`), and appends the program.
// `graph_index`: its position among the module's graphs, for EvalSteps.
ProgramPlan plan_program(ModuleBuilder& module, const ir::GraphPtr& graph, uint32_t graph_index,
                         ProgramRole role,
                         const std::unordered_map<const ir::Graph*, BodyContract>& contracts);

}  // namespace tenon::passes
