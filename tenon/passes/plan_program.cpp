#include "tenon/passes/plan_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "tenon/ir/op_def.h"
#include "tenon/passes/fuse.h"
#include "tenon/passes/lower_group.h"
#include "tenon/passes/program_draft.h"
#include "tenon/passes/value_memory.h"

namespace tenon::passes {
namespace {

using abi::Slot;
using abi::SlotId;
using ir::Value;

class Planner {
 public:
  Planner(ModuleBuilder& module, const ir::GraphPtr& graph, uint32_t graph_index, ProgramRole role,
          const Contracts& contracts)
      : module_(module),
        graph_(*graph),
        graph_index_(graph_index),
        role_(role),
        contracts_(contracts),
        partition_(fuse(*graph, module.explain)),
        draft_(module, *graph),
        values_(draft_, module, *graph, role, contracts) {
    const std::vector<ir::NodePtr> nodes = graph->nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      node_index_[nodes[i].get()] = static_cast<uint32_t>(i);
    }
  }

  ProgramPlan run() {
    plan_.program = static_cast<uint32_t>(module_.module.programs.size());
    add_results();
    values_.count_reads(partition_.groups);
    for (Group& group : partition_.groups) add_group(group);
    place_results();
    write_updates();
    plan_.contract.overwrites = values_.overwritten();
    plan_.explanation.apart = std::move(partition_.apart);
    module_.module.programs.push_back(draft_.finish());
    return std::move(plan_);
  }

 private:
  void add_results() {
    abi::Program& program = draft_.program();
    program.arguments = static_cast<uint32_t>(graph_.params.size());
    program.results = static_cast<uint32_t>(values_.results().size());
    for (uint32_t i = 0; i < program.results; ++i) {
      draft_.add_slot(Slot::Kind::kResult, values_.results()[i].type(), i);
    }
    plan_.contract.result_parameter.assign(program.results, -1);
  }

  // --- groups ---

  void add_group(Group& group) {
    explain(group);
    switch (group.kind) {
      case Group::Kind::kView: return add_view(group);
      case Group::Kind::kCall: return add_call(group);
      case Group::Kind::kHost: return add_eval(group);
      case Group::Kind::kSliceUpdate:
      case Group::Kind::kScatter: return add_update(group);
      default: return add_launch(group, {});
    }
  }

  void add_view(const Group& group) {
    const Value& operand = group.anchor->operands[0];
    const MemoryId id = values_.of(operand);
    values_.drop_read(id);
    values_.bind(group.roots[0], id);
  }

  void add_launch(const Group& group,
                  const std::unordered_map<Value, MemoryId, ir::ValueHash>& at) {
    const InPlace in_place = at.empty() ? choose_in_place(group) : InPlace();
    GroupKernel lowered = lower_group(group, "k", in_place, module_.registers);
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
        buffers.push_back(values_.read(value));
      } else {
        auto given = at.find(value);
        buffers.push_back(given != at.end() ? given->second : values_.define(value));
      }
    }
    for (const auto& [root, input] : in_place) {
      values_.note_overwrite(buffers[input]);
      values_.bind(group.roots[root], buffers[input]);
    }
    draft_.push(std::move(launch), std::move(buffers));
  }

  // Roots that can be written over an input that nobody reads after this step.
  InPlace choose_in_place(const Group& group) {
    InPlace chosen;
    std::set<MemoryId> taken;
    for (size_t r = 0; r < group.roots.size(); ++r) {
      for (const Value& input : group.elementwise_inputs) {
        const MemoryId id = values_.of(input);
        const size_t position = static_cast<size_t>(
            std::find(group.inputs.begin(), group.inputs.end(), input) - group.inputs.begin());
        if (!(input.type() == group.roots[r].type()) || taken.count(id) > 0) continue;
        if (!last_read(id, group) || !values_.replaces(id, group.roots[r])) continue;
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
                                       [&](const Value& input) { return values_.of(input) == id; });
    return readers == 1 && draft_[id].reads_left == 1;
  }

  void add_update(const Group& group) {
    const Value& target = group.anchor->operands[0];
    const Value& root = group.roots[0];
    const MemoryId from = values_.of(target);
    Group update = group;
    const bool reads_target = computes_from(group, target);
    if (!reads_target) {
      std::erase(update.inputs, target);
      values_.drop_read(from);
    }
    MemoryId to = from;
    if (!reads_target && !shares_memory(group, from) && values_.may_overwrite(from)) {
      values_.note_overwrite(from);
      values_.bind(root, from);
    } else {
      to = values_.define(root);
      draft_.push(abi::CopyStep{}, {from, to});
    }
    add_launch(update, {{root, to}});
  }

  // Whether what is written, or where, is computed from the value it is written into.
  static bool computes_from(const Group& group, const Value& target) {
    return std::any_of(group.members.begin(), group.members.end(), [&](const ir::NodePtr& node) {
      const size_t first = node == group.anchor ? 1 : 0;
      return std::find(node->operands.begin() + static_cast<ptrdiff_t>(first), node->operands.end(),
                       target) != node->operands.end();
    });
  }

  // Whether another input stands in the memory of the value that is written into.
  bool shares_memory(const Group& group, MemoryId id) {
    const Value& target = group.anchor->operands[0];
    return std::any_of(group.inputs.begin(), group.inputs.end(), [&](const Value& input) {
      return !(input == target) && values_.of(input) == id;
    });
  }

  void add_call(const Group& group) {
    const ir::Node& node = *group.anchor;
    const auto callee = node.attrs.get<ir::GraphPtr>("callee");
    const BodyContract& contract = contracts_.at(callee.get());
    std::vector<MemoryId> arguments;
    for (const Value& operand : node.operands) arguments.push_back(values_.of(operand));
    for (const Value& input : group.inputs) values_.read(input);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i >= contract.overwrites.size() || !contract.overwrites[i]) continue;
      const MemoryId given = arguments[i];
      const bool alone = std::count(arguments.begin(), arguments.end(), given) == 1;
      if (alone && values_.may_overwrite(given)) {
        values_.note_overwrite(given);
        continue;
      }
      arguments[i] = draft_.add(Memory::Kind::kTemp, node.operands[i].type(), 0);
      draft_.push(abi::CopyStep{}, {given, arguments[i]});
      draft_[given].last = std::max(draft_[given].last, draft_.step() - 1);
    }
    std::vector<MemoryId> all = arguments;
    for (uint32_t i = 0; i < node.types.size(); ++i) {
      const Value result{group.anchor, i};
      const int param = contract.result_parameter[i];
      if (param >= 0) {
        values_.bind(result, arguments[static_cast<size_t>(param)]);
        all.push_back(arguments[static_cast<size_t>(param)]);
      } else {
        all.push_back(values_.define(result));
      }
    }
    draft_.push(abi::CallStep{module_.programs.at(callee.get()), {}, {}}, std::move(all));
  }

  void add_eval(const Group& group) {
    abi::EvalStep eval;
    eval.graph = graph_index_;
    eval.node = node_index_.at(group.anchor.get());
    std::vector<MemoryId> all;
    std::vector<Value> shapes;
    for (const Value& operand : group.anchor->operands) {
      all.push_back(values_.of(operand));
      shapes.push_back(operand);
    }
    for (const Value& input : group.inputs) values_.read(input);
    for (uint32_t i = 0; i < group.anchor->types.size(); ++i) {
      all.push_back(values_.define({group.anchor, i}));
      shapes.push_back({group.anchor, i});
    }
    draft_.push(std::move(eval), std::move(all), std::move(shapes));
  }

  // --- results ---

  SlotId result_slot(uint32_t i) const { return draft_.program().arguments + i; }

  void place_results() {
    for (uint32_t i = 0; i < values_.results().size(); ++i) {
      const MemoryId id = values_.of(values_.results()[i]);
      Memory& memory = draft_[id];
      const SlotId slot = result_slot(i);
      if (memory.kind == Memory::Kind::kTemp && !memory.slot) {
        memory.slot = slot;
        memory.last = draft_.step();
      } else if (memory.kind == Memory::Kind::kArgument && role_ != ProgramRole::kEntry) {
        draft_.program().slots[slot].kind = Slot::Kind::kAlias;
        draft_.program().slots[slot].ref = *memory.slot;
        plan_.contract.result_parameter[i] = static_cast<int>(memory.ref);
      } else {
        MemoryId to = draft_.add(Memory::Kind::kTemp, values_.results()[i].type(), 0);
        draft_[to].slot = slot;
        draft_.push(abi::CopyStep{}, {id, to});
      }
    }
  }

  // New values of writable arguments, after everything that reads the old ones. A new value that
  // stands in another updated argument is saved first.
  void write_updates() {
    if (role_ != ProgramRole::kEntry) return;
    std::set<MemoryId> targets;
    for (const ir::Update& update : graph_.updates) {
      targets.insert(values_.of(graph_.params[update.param]));
    }
    std::vector<std::pair<MemoryId, MemoryId>> copies;
    for (const ir::Update& update : graph_.updates) {
      MemoryId from = values_.of(update.value);
      const MemoryId to = values_.of(graph_.params[update.param]);
      if (from == to) continue;
      if (targets.count(from) > 0) {
        const MemoryId saved = draft_.add(Memory::Kind::kTemp, update.value.type(), 0);
        draft_.push(abi::CopyStep{}, {from, saved});
        from = saved;
      }
      copies.emplace_back(from, to);
    }
    for (const auto& [from, to] : copies) {
      if (!write_directly(from, to)) draft_.push(abi::CopyStep{}, {from, to});
    }
  }

  // Lets the steps that compute a new value write it into the argument, when none of them, and none
  // after them, reads the old one.
  bool write_directly(MemoryId from, MemoryId to) {
    Memory& source = draft_[from];
    Memory& target = draft_[to];
    if (source.kind != Memory::Kind::kTemp || source.slot) return false;
    if (target.last >= source.first && draft_.is_used_from(source.first, to)) return false;
    source.slot = target.slot;
    return true;
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
  const Contracts& contracts_;
  Partition partition_;
  ProgramDraft draft_;
  ValueMemory values_;
  ProgramPlan plan_;
  std::unordered_map<const ir::Node*, uint32_t> node_index_;
};

}  // namespace

ProgramPlan plan_program(ModuleBuilder& module, const ir::GraphPtr& graph, uint32_t graph_index,
                         ProgramRole role,
                         const std::unordered_map<const ir::Graph*, BodyContract>& contracts) {
  return Planner(module, graph, graph_index, role, contracts).run();
}

}  // namespace tenon::passes
