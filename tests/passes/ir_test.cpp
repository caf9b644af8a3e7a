// Runs the texts of tests/ir: every graph pass by its name, and `kernels`: the whole way to kernels
// and the steps that launch them.
#include <gtest/gtest.h>

#include "../ir/ir_file.h"
#include "tenon/ops/registry.h"
#include "tenon/passes/pipeline.h"

namespace tenon {
namespace {

std::string slot_text(const abi::Program& program, abi::SlotId id) {
  static constexpr const char* kNames[] = {"argument ", "result ", "temp ", "constant ", "alias "};
  const abi::Slot& slot = program.slots[id];
  const bool temp = slot.kind == abi::Slot::Kind::kTemp;
  return kNames[static_cast<size_t>(slot.kind)] + std::to_string(temp ? id : slot.ref);
}

std::string step_text(const passes::Lowered& lowered, const abi::Program& program,
                      const abi::Step& step) {
  auto slots = [&](const std::vector<abi::SlotId>& ids) {
    std::string text;
    for (abi::SlotId id : ids) text += (text.empty() ? "" : ", ") + slot_text(program, id);
    return text;
  };
  if (const auto* launch = std::get_if<abi::LaunchStep>(&step)) {
    return fmt::format("launch {} ({})\n", lowered.kernels[launch->kernel].name,
                       slots(launch->buffers));
  }
  if (const auto* copy = std::get_if<abi::CopyStep>(&step)) {
    return fmt::format("copy {} to {}\n", slots({copy->from}), slots({copy->to}));
  }
  if (const auto* call = std::get_if<abi::CallStep>(&step)) {
    return fmt::format("call {} ({}) → ({})\n", lowered.module.programs[call->program].name,
                       slots(call->arguments), slots(call->results));
  }
  const auto& eval = std::get<abi::EvalStep>(step);
  return fmt::format("evaluate ({}) → ({})\n", slots(eval.operands), slots(eval.results));
}

std::string kernels_text(const ir::GraphPtr& graph) {
  passes::Options options;
  options.verify = true;
  const passes::Lowered lowered = passes::lower(graph, options);
  std::string text;
  for (const kir::Kernel& kernel : lowered.kernels) {
    kir::verify(kernel);
    text += kir::print(kernel) + "\n";
  }
  for (const abi::Program& program : lowered.module.programs) {
    text += fmt::format("program {}\n", program.name);
    for (const abi::Step& step : program.steps) text += "  " + step_text(lowered, program, step);
  }
  return text;
}

TEST(IrTexts, Passes) {
  ops::register_all();
  ir_test::PassTable table{{"kernels", {.text = kernels_text}}};
  for (const passes::GraphPass& pass : passes::graph_passes()) {
    table.emplace(std::string(pass.name), ir_test::Pass{.graph = pass.run});
  }
  ir_test::run_ir_files("tests/ir", table);
}

}  // namespace
}  // namespace tenon
