#include "tenon/runtime/external_stream.h"

#include <algorithm>
#include <optional>

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

std::vector<abi::SlotId> slots_of(const abi::Step& step) {
  if (const auto* launch = std::get_if<abi::LaunchStep>(&step)) return launch->buffers;
  if (const auto* copy = std::get_if<abi::CopyStep>(&step)) return {copy->from, copy->to};
  std::vector<abi::SlotId> slots;
  auto add = [&slots](const std::vector<abi::SlotId>& more) {
    slots.insert(slots.end(), more.begin(), more.end());
  };
  if (const auto* call = std::get_if<abi::CallStep>(&step)) {
    add(call->arguments);
    add(call->results);
  } else {
    const auto& eval = std::get<abi::EvalStep>(step);
    add(eval.operands);
    add(eval.results);
  }
  return slots;
}

}  // namespace

ExternalStream::ExternalStream(const abi::Program& program, const ProgramPlan& plan,
                               std::function<Array(size_t)> fetch)
    : program_(program),
      plan_(plan),
      fetch_(std::move(fetch)),
      arrays_(program.arguments),
      kept_(program.arguments),
      reads_(program.steps.size()),
      leaves_(program.steps.size()) {
  auto argument_of = [&](abi::SlotId slot) -> std::optional<size_t> {
    const abi::Slot& root = program.slots[plan.slots[slot].root];
    if (root.kind != abi::Slot::Kind::kArgument) return std::nullopt;
    return root.ref;
  };
  std::vector<std::optional<size_t>> last(program.arguments);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (abi::SlotId slot : slots_of(program.steps[i])) {
      const std::optional<size_t> argument = argument_of(slot);
      if (!argument || last[*argument] == i) continue;
      reads_[i].push_back(*argument);
      last[*argument] = i;
    }
  }
  for (uint32_t i = 0; i < program.results; ++i) {
    if (auto argument = argument_of(program.arguments + i)) kept_[*argument] = true;
  }
  for (size_t i = 0; i < last.size(); ++i) {
    if (last[i] && !kept_[i]) leaves_[*last[i]].push_back(i);
  }
}

void ExternalStream::before(size_t step, void** slots) {
  for (size_t argument : reads_[step]) fetch(argument, slots);
}

void ExternalStream::after(size_t step) {
  for (size_t argument : leaves_[step]) arrays_[argument] = Array();
}

void ExternalStream::finish(void** slots) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i]) fetch(i, slots);
  }
}

void ExternalStream::fetch(size_t argument, void** slots) {
  if (arrays_[argument].valid()) return;
  arrays_[argument] = fetch_(argument);
  check_internal(arrays_[argument].bytes() == plan_.slots[argument].bytes,
                 "an external has another size");
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    const abi::Slot& root = program_.slots[plan_.slots[i].root];
    if (root.kind == abi::Slot::Kind::kArgument && root.ref == argument) {
      // No step of a setup program writes an argument (module_check.h).
      slots[i] = const_cast<void*>(arrays_[argument].data());
    }
  }
}

}  // namespace tenon::runtime
