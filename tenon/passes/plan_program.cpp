#include "tenon/passes/plan_program.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"
#include "tenon/passes/fuse.h"
#include "tenon/passes/lower_group.h"

namespace tenon::passes {
namespace {

using abi::Slot;
using abi::SlotId;
using ir::Value;

// One piece of memory: an argument, a constant, or a temporary that may become a result.
struct Memory {
  enum class Kind : uint8_t { kArgument, kConstant, kTemp };
  Kind kind = Kind::kTemp;
  uint32_t ref = 0;
  ir::TensorType type;
  std::optional<SlotId> slot;  // given for arguments and results
  int reads_left = 0;          // by steps not yet planned, and by outputs
  uint32_t first = 0;
  uint32_t last = 0;
};

class Planner {
 public:
  Planner(ModuleBuilder& module, const ir::GraphPtr& graph, uint32_t graph_index, ProgramRole role,
          const std::unordered_map<const ir::Graph*, BodyContract>& contracts)
      : module_(module),
        graph_(*graph),
        graph_index_(graph_index),
        role_(role),
        contracts_(contracts),
        partition_(fuse(*graph, module.explain)) {
    const std::vector<ir::NodePtr> nodes = graph->nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      node_index_[nodes[i].get()] = static_cast<uint32_t>(i);
    }
  }

  ProgramPlan run() {
    plan_.program = static_cast<uint32_t>(module_.module.programs.size());
    program_.name = graph_.name;
    add_arguments();
    add_results();
    count_reads();
    for (Group& group : partition_.groups) add_group(group);
    place_results();
    write_updates();
    place_temps();
    finish_steps();
    plan_.contract.overwrites = overwritten_;
    plan_.explanation.apart = std::move(partition_.apart);
    module_.module.programs.push_back(std::move(program_));
    return std::move(plan_);
  }

 private:
  // Steps hold memories until slots are known.
  using MemoryId = uint32_t;

  // --- memories ---
  SlotId add_slot(Slot::Kind kind, const ir::TensorType& type, uint32_t ref) {
    Slot slot;
    slot.kind = kind;
    slot.dtype = type.dtype;
    slot.dims = module_.dims(type.shape);
    slot.bytes = module_.dim(product(type.shape) * Dim(static_cast<int64_t>(size_of(type.dtype))));
    slot.ref = ref;
    program_.slots.push_back(std::move(slot));
    return static_cast<SlotId>(program_.slots.size()) - 1;
  }

  MemoryId add_memory(Memory::Kind kind, const ir::TensorType& type, uint32_t ref) {
    Memory memory;
    memory.kind = kind;
    memory.type = type;
    memory.ref = ref;
    memory.first = step();
    memory.last = step();
    memories_.push_back(std::move(memory));
    return static_cast<MemoryId>(memories_.size()) - 1;
  }

  uint32_t step() const { return static_cast<uint32_t>(steps_.size()); }

  void add_arguments() {
    program_.arguments = static_cast<uint32_t>(graph_.params.size());
    overwritten_.assign(graph_.params.size(), false);
    for (uint32_t i = 0; i < graph_.params.size(); ++i) {
      const Value& param = graph_.params[i];
      const MemoryId id = add_memory(Memory::Kind::kArgument, param.type(), i);
      memories_[id].slot = add_slot(Slot::Kind::kArgument, param.type(), i);
      memory_of_[param] = id;
    }
  }

  std::vector<Value> program_results() const {
    return role_ == ProgramRole::kEntry ? graph_.results : graph_.outputs();
  }

  void add_results() {
    results_ = program_results();
    program_.results = static_cast<uint32_t>(results_.size());
    for (uint32_t i = 0; i < results_.size(); ++i) {
      add_slot(Slot::Kind::kResult, results_[i].type(), i);
    }
    plan_.contract.result_parameter.assign(results_.size(), -1);
  }

  MemoryId memory(const Value& value) {
    auto it = memory_of_.find(value);
    if (it != memory_of_.end()) return it->second;
    check_internal(value.node->op == &ir::kConstant, "a value is planned before its readers");
    const Literal& literal = value.node->attrs.get<Literal>("value");
    const uint32_t ref = module_.constant(literal);
    const MemoryId id = add_memory(Memory::Kind::kConstant, value.type(), ref);
    return memory_of_[value] = id;
  }

  // Values are read as often as groups list them as inputs and outputs list them.
  void count_reads() {
    for (const Group& group : partition_.groups) {
      for (const Value& input : group.inputs) ++reads_[input];
    }
    for (const Value& value : results_) ++reads_[value];
    if (role_ == ProgramRole::kEntry) {
      for (const ir::Update& update : graph_.updates) ++reads_[update.value];
    }
    for (const Value& param : graph_.params)
      memories_[memory_of_[param]].reads_left = reads_[param];
  }

  MemoryId define(const Value& value) {
    const MemoryId id = add_memory(Memory::Kind::kTemp, value.type(), 0);
    bind(value, id);
    return id;
  }

  void bind(const Value& value, MemoryId id) {
    memory_of_[value] = id;
    memories_[id].reads_left += reads_[value];
  }

  MemoryId read(const Value& value) {
    const MemoryId id = memory(value);
    Memory& memory = memories_[id];
    --memory.reads_left;
    memory.last = std::max(memory.last, step());
    return id;
  }

  // Whether a step may overwrite the memory of `value`, whose read by that step is already counted.
  bool may_overwrite(MemoryId id) const {
    const Memory& memory = memories_[id];
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

  // Parameters of a body from which a result comes by region updates: the caller loses nothing when
  // the body writes there.
  const std::set<uint32_t>& donated() const {
    if (donated_) return *donated_;
    donated_.emplace();
    for (Value value : results_) {
      while (true) {
        if (value.node->op->name == "slice_update") {
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

  void note_overwrite(MemoryId id) {
    if (memories_[id].kind == Memory::Kind::kArgument) overwritten_[memories_[id].ref] = true;
  }

  // --- groups ---
  void add_group(Group& group) {
    explain(group);
    switch (group.kind) {
      case Group::Kind::kView: return add_view(group);
      case Group::Kind::kCall: return add_call(group);
      case Group::Kind::kHost: return add_eval(group);
      case Group::Kind::kSliceUpdate: return add_slice_update(group);
      default: return add_launch(group, {});
    }
  }

  void add_view(const Group& group) {
    const Value& operand = group.anchor->operands[0];
    const MemoryId id = memory(operand);
    --memories_[id].reads_left;
    bind(group.roots[0], id);
  }

  void add_launch(const Group& group,
                  const std::unordered_map<Value, MemoryId, ir::ValueHash>& at) {
    const InPlace in_place = at.empty() ? choose_in_place(group) : InPlace();
    GroupKernel lowered = lower_group(group, "k", in_place);
    abi::LaunchStep launch;
    const kir::Kernel& kernel = lowered.kernel;
    for (const Dim& dim : kernel.dims) launch.dims.push_back(module_.dim(dim));
    launch.grid = module_.dim(kernel.grid);
    launch.scratch_bytes = module_.dim(kernel.scratch_bytes);
    launch.bytes_per_index = module_.dim(kernel.bytes_per_index);
    launch.ops_per_index = module_.dim(kernel.ops_per_index);
    launch.kernel = module_.kernel(std::move(lowered.kernel));
    std::vector<MemoryId> buffers;
    for (size_t i = 0; i < lowered.buffers.size(); ++i) {
      const Value& value = lowered.buffers[i];
      if (i < group.inputs.size()) {
        buffers.push_back(read(value));
      } else {
        auto given = at.find(value);
        buffers.push_back(given != at.end() ? given->second : define(value));
      }
    }
    for (const auto& [root, input] : in_place) {
      note_overwrite(buffers[input]);
      bind(group.roots[root], buffers[input]);
    }
    push(std::move(launch), std::move(buffers));
  }

  // Roots that can be written over an input that nobody reads after this step.
  InPlace choose_in_place(const Group& group) {
    InPlace chosen;
    std::set<MemoryId> taken;
    for (size_t r = 0; r < group.roots.size(); ++r) {
      for (const Value& input : group.elementwise_inputs) {
        const MemoryId id = memory(input);
        const size_t position = static_cast<size_t>(
            std::find(group.inputs.begin(), group.inputs.end(), input) - group.inputs.begin());
        if (!(input.type() == group.roots[r].type()) || taken.count(id) > 0) continue;
        if (!last_read(id, group) || !replaces(id, group.roots[r])) continue;
        taken.insert(id);
        chosen[r] = position;
        break;
      }
    }
    return chosen;
  }

  // Whether this group holds the only reads of a memory that are left, all through one input.
  bool last_read(MemoryId id, const Group& group) {
    const auto readers = std::count_if(group.inputs.begin(), group.inputs.end(),
                                       [&](const Value& input) { return memory(input) == id; });
    return readers == 1 && memories_[id].reads_left == 1;
  }

  // Whether `value` may stand in that memory: a temporary, or the argument whose new value it is.
  bool replaces(MemoryId id, const Value& value) const {
    const Memory& memory = memories_[id];
    if (memory.kind == Memory::Kind::kTemp) return true;
    if (memory.kind == Memory::Kind::kConstant || role_ != ProgramRole::kEntry) return false;
    return std::any_of(graph_.updates.begin(), graph_.updates.end(), [&](const ir::Update& update) {
      return update.param == memory.ref && update.value == value;
    });
  }

  void add_slice_update(const Group& group) {
    const Value& target = group.anchor->operands[0];
    const Value& root = group.roots[0];
    const MemoryId from = memory(target);
    Group region = group;
    const bool reads_target = computes_from(group, target);
    if (!reads_target) {
      region.inputs.erase(std::remove(region.inputs.begin(), region.inputs.end(), target),
                          region.inputs.end());
      --memories_[from].reads_left;
    }
    MemoryId to = from;
    if (!reads_target && !shares_memory(group, from) && may_overwrite(from)) {
      note_overwrite(from);
      bind(root, from);
    } else {
      to = define(root);
      push(abi::CopyStep{}, {from, to});
    }
    add_launch(region, {{root, to}});
  }

  // Whether the written region, or where it starts, is computed from the value it is written into.
  static bool computes_from(const Group& group, const Value& target) {
    return std::any_of(group.members.begin(), group.members.end(), [&](const ir::NodePtr& node) {
      const size_t first = node == group.anchor ? 1 : 0;
      return std::find(node->operands.begin() + static_cast<ptrdiff_t>(first), node->operands.end(),
                       target) != node->operands.end();
    });
  }

  // Whether another input stands in the memory of the value that the region is written into.
  bool shares_memory(const Group& group, MemoryId id) {
    const Value& target = group.anchor->operands[0];
    return std::any_of(group.inputs.begin(), group.inputs.end(), [&](const Value& input) {
      return !(input == target) && memory(input) == id;
    });
  }

  void add_call(const Group& group) {
    const ir::Node& node = *group.anchor;
    const auto callee = node.attrs.get<ir::GraphPtr>("callee");
    const BodyContract& contract = contracts_.at(callee.get());
    std::vector<MemoryId> arguments;
    for (const Value& operand : node.operands) arguments.push_back(memory(operand));
    for (const Value& input : group.inputs) read(input);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i >= contract.overwrites.size() || !contract.overwrites[i]) continue;
      const MemoryId given = arguments[i];
      const bool alone = std::count(arguments.begin(), arguments.end(), given) == 1;
      if (alone && may_overwrite(given)) {
        note_overwrite(given);
        continue;
      }
      arguments[i] = add_memory(Memory::Kind::kTemp, node.operands[i].type(), 0);
      push(abi::CopyStep{}, {given, arguments[i]});
      memories_[given].last = std::max(memories_[given].last, step() - 1);
    }
    std::vector<MemoryId> all = arguments;
    for (uint32_t i = 0; i < node.types.size(); ++i) {
      const Value result{group.anchor, i};
      const int param = contract.result_parameter[i];
      if (param >= 0) {
        bind(result, arguments[static_cast<size_t>(param)]);
        all.push_back(arguments[static_cast<size_t>(param)]);
      } else {
        all.push_back(define(result));
      }
    }
    push(abi::CallStep{module_.programs.at(callee.get()), {}, {}}, std::move(all));
  }

  void add_eval(const Group& group) {
    abi::EvalStep eval;
    eval.graph = graph_index_;
    eval.node = node_index_.at(group.anchor.get());
    std::vector<MemoryId> all;
    std::vector<Value> shapes;
    for (const Value& operand : group.anchor->operands) {
      all.push_back(memory(operand));
      shapes.push_back(operand);
    }
    for (const Value& input : group.inputs) read(input);
    for (uint32_t i = 0; i < group.anchor->types.size(); ++i) {
      all.push_back(define({group.anchor, i}));
      shapes.push_back({group.anchor, i});
    }
    push(std::move(eval), std::move(all), std::move(shapes));
  }

  // --- steps ---
  struct Draft {
    abi::Step step;
    std::vector<MemoryId> memories;
    std::vector<Value> values;  // of EvalSteps: their slots carry these types
  };

  void push(abi::Step step, std::vector<MemoryId> memories, std::vector<Value> values = {}) {
    const uint32_t at = this->step();
    for (MemoryId id : memories) memories_[id].last = std::max(memories_[id].last, at);
    steps_.push_back({std::move(step), std::move(memories), std::move(values)});
  }

  // --- results ---
  SlotId result_slot(uint32_t i) const { return program_.arguments + i; }

  void place_results() {
    for (uint32_t i = 0; i < results_.size(); ++i) {
      const MemoryId id = memory(results_[i]);
      Memory& memory = memories_[id];
      const SlotId slot = result_slot(i);
      if (memory.kind == Memory::Kind::kTemp && !memory.slot) {
        memory.slot = slot;
        memory.last = step();
      } else if (memory.kind == Memory::Kind::kArgument && role_ != ProgramRole::kEntry) {
        program_.slots[slot].kind = Slot::Kind::kAlias;
        program_.slots[slot].ref = *memory.slot;
        plan_.contract.result_parameter[i] = static_cast<int>(memory.ref);
      } else {
        MemoryId to = add_memory(Memory::Kind::kTemp, results_[i].type(), 0);
        memories_[to].slot = slot;
        push(abi::CopyStep{}, {id, to});
      }
    }
  }

  // New values of writable arguments, after everything that reads the old ones. A new value that
  // stands in another updated argument is saved first.
  void write_updates() {
    if (role_ != ProgramRole::kEntry) return;
    std::set<MemoryId> targets;
    for (const ir::Update& update : graph_.updates) {
      targets.insert(memory_of_.at(graph_.params[update.param]));
    }
    std::vector<std::pair<MemoryId, MemoryId>> copies;
    for (const ir::Update& update : graph_.updates) {
      MemoryId from = memory(update.value);
      const MemoryId to = memory_of_.at(graph_.params[update.param]);
      if (from == to) continue;
      if (targets.count(from) > 0) {
        const MemoryId saved = add_memory(Memory::Kind::kTemp, update.value.type(), 0);
        push(abi::CopyStep{}, {from, saved});
        from = saved;
      }
      copies.emplace_back(from, to);
    }
    for (const auto& [from, to] : copies) {
      if (!write_directly(from, to)) push(abi::CopyStep{}, {from, to});
    }
  }

  // Lets the steps that compute a new value write it into the argument, when none of them, and none
  // after them, reads the old one.
  bool write_directly(MemoryId from, MemoryId to) {
    Memory& source = memories_[from];
    Memory& target = memories_[to];
    if (source.kind != Memory::Kind::kTemp || source.slot) return false;
    if (target.last >= source.first && target_is_read_from(to, source.first)) return false;
    source.slot = target.slot;
    return true;
  }

  bool target_is_read_from(MemoryId target, uint32_t first) const {
    for (uint32_t s = first; s < steps_.size(); ++s) {
      const std::vector<MemoryId>& used = steps_[s].memories;
      if (std::find(used.begin(), used.end(), target) != used.end()) return true;
    }
    return false;
  }

  void place_temps() {
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
  SlotId typed_slot(MemoryId id, const Value& value) {
    const SlotId base = *memories_[id].slot;
    const std::vector<abi::DimId> dims = module_.dims(value.shape());
    if (program_.slots[base].dims == dims) return base;
    const SlotId alias = add_slot(Slot::Kind::kAlias, value.type(), base);
    return alias;
  }

  void finish_steps() {
    for (Draft& draft : steps_) {
      std::vector<SlotId> slots;
      for (size_t i = 0; i < draft.memories.size(); ++i) {
        const MemoryId id = draft.memories[i];
        slots.push_back(draft.values.empty() ? *memories_[id].slot
                                             : typed_slot(id, draft.values[i]));
      }
      if (auto* launch = std::get_if<abi::LaunchStep>(&draft.step)) {
        launch->buffers = slots;
      } else if (auto* copy = std::get_if<abi::CopyStep>(&draft.step)) {
        copy->from = slots[0];
        copy->to = slots[1];
      } else if (auto* call = std::get_if<abi::CallStep>(&draft.step)) {
        const auto split = slots.begin() + module_.module.programs[call->program].arguments;
        call->arguments.assign(slots.begin(), split);
        call->results.assign(split, slots.end());
      } else if (auto* eval = std::get_if<abi::EvalStep>(&draft.step)) {
        const size_t results = draft.values.empty() ? 0 : result_count(*eval);
        eval->operands.assign(slots.begin(), slots.end() - static_cast<ptrdiff_t>(results));
        eval->results.assign(slots.end() - static_cast<ptrdiff_t>(results), slots.end());
      }
      program_.steps.push_back(std::move(draft.step));
    }
  }

  size_t result_count(const abi::EvalStep& eval) const {
    return graph_.nodes()[eval.node]->types.size();
  }

  void explain(const Group& group) {
    const bool own = group.kind != Group::Kind::kView && group.kind != Group::Kind::kCall;
    if (!module_.explain || !own) return;
    std::string ops;
    for (const ir::NodePtr& node : group.members) {
      if (!ops.empty()) ops += "·";
      ops += node->op->name;
    }
    std::string roots;
    for (const Value& root : group.roots) {
      if (!roots.empty()) roots += ", ";
      roots += ir::brief(root.type());
    }
    plan_.explanation.groups +=
        fmt::format("@{} {} {} → {}\n", graph_.name, name(group.kind), ops, roots);
  }

  ModuleBuilder& module_;
  const ir::Graph& graph_;
  uint32_t graph_index_;
  ProgramRole role_;
  const std::unordered_map<const ir::Graph*, BodyContract>& contracts_;
  Partition partition_;
  ProgramPlan plan_;
  abi::Program program_;
  std::vector<Value> results_;
  std::vector<Memory> memories_;
  std::unordered_map<Value, MemoryId, ir::ValueHash> memory_of_;
  std::unordered_map<Value, int, ir::ValueHash> reads_;
  std::unordered_map<const ir::Node*, uint32_t> node_index_;
  std::vector<Draft> steps_;
  std::vector<bool> overwritten_;
  mutable std::optional<std::set<uint32_t>> donated_;
};

}  // namespace

ProgramPlan plan_program(ModuleBuilder& module, const ir::GraphPtr& graph, uint32_t graph_index,
                         ProgramRole role,
                         const std::unordered_map<const ir::Graph*, BodyContract>& contracts) {
  return Planner(module, graph, graph_index, role, contracts).run();
}

}  // namespace tenon::passes
