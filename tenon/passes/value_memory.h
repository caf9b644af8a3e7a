// Which memory holds each value of a graph, how often it is still read, and who may write over it.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "tenon/passes/group.h"
#include "tenon/passes/plan_program.h"
#include "tenon/passes/program_draft.h"

namespace tenon::passes {

using Contracts = std::unordered_map<const ir::Graph*, BodyContract>;

class ValueMemory {
 public:
  ValueMemory(ProgramDraft& draft, ModuleBuilder& module, const ir::Graph& graph, ProgramRole role,
              const Contracts& contracts);

  // Values are read as often as groups list them as inputs and as outputs list them.
  void count_reads(const std::vector<Group>& groups);

  // Constants get memory when they are first asked for.
  MemoryId of(const ir::Value& value);
  MemoryId define(const ir::Value& value);  // in new memory
  void bind(const ir::Value& value, MemoryId id);
  MemoryId read(const ir::Value& value);  // by the next step
  // One read less, without a step.
  void drop_read(MemoryId id) { --draft_[id].reads_left; }

  // Whether the next step may overwrite the memory, when it has counted its own reads.
  bool may_overwrite(MemoryId id) const;
  // Whether `value` may stand in that memory: a temporary, or the argument whose new value it is.
  bool replaces(MemoryId id, const ir::Value& value) const;
  void note_overwrite(MemoryId id);
  // By parameter: whether a step overwrites it.
  const std::vector<bool>& overwritten() const { return overwritten_; }

  const std::vector<ir::Value>& results() const { return results_; }

 private:
  const std::set<uint32_t>& donated() const;

  ProgramDraft& draft_;
  ModuleBuilder& module_;
  const ir::Graph& graph_;
  ProgramRole role_;
  const Contracts& contracts_;
  std::vector<ir::Value> results_;
  std::unordered_map<ir::Value, MemoryId, ir::ValueHash> memory_of_;
  std::unordered_map<ir::Value, int, ir::ValueHash> reads_;
  std::vector<bool> overwritten_;
  mutable std::optional<std::set<uint32_t>> donated_;
};

}  // namespace tenon::passes
