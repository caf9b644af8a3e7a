#include "tenon/passes/value_memory.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/ops/scatter.h"

namespace tenon::passes {

using ir::Value;

ValueMemory::ValueMemory(ProgramDraft& draft, ModuleBuilder& module, const ir::Graph& graph,
                         ProgramRole role, const Contracts& contracts)
    : draft_(draft),
      module_(module),
      graph_(graph),
      role_(role),
      contracts_(contracts),
      results_(role == ProgramRole::kEntry ? graph.results : graph.outputs()),
      overwritten_(graph.params.size(), false) {
  for (uint32_t i = 0; i < graph.params.size(); ++i) {
    const Value& param = graph.params[i];
    const MemoryId id = draft.add(Memory::Kind::kArgument, param.type(), i);
    draft[id].slot = draft.add_slot(abi::Slot::Kind::kArgument, param.type(), i);
    memory_of_[param] = id;
  }
}

void ValueMemory::count_reads(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const Value& input : group.inputs) ++reads_[input];
  }
  for (const Value& value : results_) ++reads_[value];
  if (role_ == ProgramRole::kEntry) {
    for (const ir::Update& update : graph_.updates) ++reads_[update.value];
  }
  for (const Value& param : graph_.params) draft_[memory_of_[param]].reads_left = reads_[param];
}

MemoryId ValueMemory::of(const Value& value) {
  auto it = memory_of_.find(value);
  if (it != memory_of_.end()) return it->second;
  check_internal(value.node->op == &ir::kConstant, "a value is planned before its readers");
  const uint32_t ref = module_.constant(value.node->attrs.get<Literal>("value"));
  return memory_of_[value] = draft_.add(Memory::Kind::kConstant, value.type(), ref);
}

MemoryId ValueMemory::define(const Value& value) {
  const MemoryId id = draft_.add(Memory::Kind::kTemp, value.type());
  bind(value, id);
  return id;
}

void ValueMemory::bind(const Value& value, MemoryId id) {
  memory_of_[value] = id;
  draft_[id].reads_left += reads_[value];
}

MemoryId ValueMemory::read(const Value& value) {
  const MemoryId id = of(value);
  Memory& memory = draft_[id];
  --memory.reads_left;
  memory.last = std::max(memory.last, draft_.step());
  return id;
}

bool ValueMemory::may_overwrite(MemoryId id) const {
  const Memory& memory = draft_[id];
  if (memory.reads_left > 0) return false;
  switch (memory.kind) {
    case Memory::Kind::kConstant: return false;
    case Memory::Kind::kTemp: return true;
    case Memory::Kind::kArgument: break;
  }
  if (role_ == ProgramRole::kSetup) return false;
  if (role_ == ProgramRole::kBody) return donated().count(memory.ref) > 0;
  return std::any_of(graph_.updates.begin(), graph_.updates.end(),
                     [&](const ir::Update& update) { return update.param == memory.ref; });
}

bool ValueMemory::replaces(MemoryId id, const Value& value) const {
  const Memory& memory = draft_[id];
  if (memory.kind == Memory::Kind::kTemp) return true;
  if (memory.kind == Memory::Kind::kConstant || role_ != ProgramRole::kEntry) return false;
  return std::any_of(graph_.updates.begin(), graph_.updates.end(), [&](const ir::Update& update) {
    return update.param == memory.ref && update.value == value;
  });
}

void ValueMemory::note_overwrite(MemoryId id) {
  if (draft_[id].kind == Memory::Kind::kArgument) overwritten_[draft_[id].ref] = true;
}

// Parameters of a body from which a result comes by updates: the caller loses nothing when
// the body writes there.
const std::set<uint32_t>& ValueMemory::donated() const {
  if (donated_) return *donated_;
  donated_.emplace();
  for (Value value : results_) {
    while (true) {
      if (value.node->op->name == "slice_update" || ops::is_scatter(*value.node)) {
        value = value.node->operands[0];
      } else if (value.node->op == &ir::kCall) {
        const auto callee = value.node->attrs.get<ir::GraphPtr>("callee");
        const int param = contracts_.at(callee.get()).result_parameter[value.index];
        if (param < 0) break;
        value = value.node->operands[static_cast<size_t>(param)];
      } else {
        break;
      }
    }
    for (uint32_t i = 0; i < graph_.params.size(); ++i) {
      if (graph_.params[i] == value) donated_->insert(i);
    }
  }
  return *donated_;
}

}  // namespace tenon::passes
