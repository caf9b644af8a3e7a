#include "tenon/passes/program_draft.h"

#include <algorithm>

namespace tenon::passes {

using abi::Slot;
using abi::SlotId;

ProgramDraft::ProgramDraft(ModuleBuilder& module, const ir::Graph& graph)
    : module_(module), graph_(graph) {
  program_.name = graph.name;
}

MemoryId ProgramDraft::add(Memory::Kind kind, const ir::TensorType& type, uint32_t ref) {
  Memory memory;
  memory.kind = kind;
  memory.type = type;
  memory.ref = ref;
  memory.first = step();
  memory.last = step();
  memories_.push_back(std::move(memory));
  return static_cast<MemoryId>(memories_.size()) - 1;
}

SlotId ProgramDraft::add_slot(Slot::Kind kind, const ir::TensorType& type, uint32_t ref) {
  Slot slot;
  slot.kind = kind;
  slot.dtype = type.dtype;
  slot.dims = module_.dims(type.shape);
  slot.bytes = module_.dim(product(type.shape) * Dim(static_cast<int64_t>(size_of(type.dtype))));
  slot.ref = ref;
  program_.slots.push_back(std::move(slot));
  return static_cast<SlotId>(program_.slots.size()) - 1;
}

void ProgramDraft::push(abi::Step step, std::vector<MemoryId> memories,
                        std::vector<ir::Value> values) {
  const uint32_t at = this->step();
  for (MemoryId id : memories) memories_[id].last = std::max(memories_[id].last, at);
  steps_.push_back({std::move(step), std::move(memories), std::move(values)});
}

bool ProgramDraft::is_used_from(uint32_t first, MemoryId id) const {
  return std::any_of(steps_.begin() + first, steps_.end(), [id](const Draft& draft) {
    return std::find(draft.memories.begin(), draft.memories.end(), id) != draft.memories.end();
  });
}

abi::Program ProgramDraft::finish() {
  place_memories();
  for (Draft& draft : steps_) {
    std::vector<SlotId> slots;
    for (size_t i = 0; i < draft.memories.size(); ++i) {
      const MemoryId id = draft.memories[i];
      slots.push_back(draft.values.empty() ? *memories_[id].slot : typed_slot(id, draft.values[i]));
    }
    fill(draft.step, slots);
    program_.steps.push_back(std::move(draft.step));
  }
  return std::move(program_);
}

void ProgramDraft::place_memories() {
  for (Memory& memory : memories_) {
    if (memory.slot) continue;
    const bool constant = memory.kind == Memory::Kind::kConstant;
    memory.slot =
        add_slot(constant ? Slot::Kind::kConstant : Slot::Kind::kTemp, memory.type, memory.ref);
    program_.slots[*memory.slot].first = memory.first;
    program_.slots[*memory.slot].last = memory.last;
  }
}

// The slot of `value` in memory `id`: an alias where it has another shape there.
SlotId ProgramDraft::typed_slot(MemoryId id, const ir::Value& value) {
  const SlotId base = *memories_[id].slot;
  if (program_.slots[base].dims == module_.dims(value.shape())) return base;
  return add_slot(Slot::Kind::kAlias, value.type(), base);
}

void ProgramDraft::fill(abi::Step& step, const std::vector<SlotId>& slots) const {
  if (auto* launch = std::get_if<abi::LaunchStep>(&step)) {
    launch->buffers = slots;
  } else if (auto* copy = std::get_if<abi::CopyStep>(&step)) {
    copy->from = slots[0];
    copy->to = slots[1];
  } else if (auto* call = std::get_if<abi::CallStep>(&step)) {
    const auto split = slots.begin() + module_.module.programs[call->program].arguments;
    call->arguments.assign(slots.begin(), split);
    call->results.assign(split, slots.end());
  } else if (auto* eval = std::get_if<abi::EvalStep>(&step)) {
    const size_t results = graph_.nodes()[eval->node]->types.size();
    const auto split = slots.end() - static_cast<ptrdiff_t>(results);
    eval->operands.assign(slots.begin(), split);
    eval->results.assign(split, slots.end());
  }
}

}  // namespace tenon::passes
