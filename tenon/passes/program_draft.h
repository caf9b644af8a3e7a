// A program before its slots are known: pieces of memory, and the steps that use them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/passes/module_builder.h"

namespace tenon::passes {

// One piece of memory: an argument, a constant, or a temporary that may become a result.
struct Memory {
  enum class Kind : uint8_t { kArgument, kConstant, kTemp };
  Kind kind = Kind::kTemp;
  uint32_t ref = 0;  // position among the arguments, or among the module's constants
  ir::TensorType type;
  std::optional<abi::SlotId> slot;  // given for arguments and results
  int reads_left = 0;               // by steps not yet planned, and by outputs
  uint32_t first = 0;               // steps between which it holds something
  uint32_t last = 0;
};
using MemoryId = uint32_t;

class ProgramDraft {
 public:
  ProgramDraft(ModuleBuilder& module, const ir::Graph& graph);

  MemoryId add(Memory::Kind kind, const ir::TensorType& type, uint32_t ref = 0);
  Memory& operator[](MemoryId id) { return memories_[id]; }
  const Memory& operator[](MemoryId id) const { return memories_[id]; }

  abi::SlotId add_slot(abi::Slot::Kind kind, const ir::TensorType& type, uint32_t ref);
  abi::Program& program() { return program_; }
  const abi::Program& program() const { return program_; }

  // The number of the step that push() adds next.
  uint32_t step() const { return static_cast<uint32_t>(steps_.size()); }
  // `memories`: operands first, results after them; with `values`, one a memory, slots carry their
  // types.
  void push(abi::Step step, std::vector<MemoryId> memories, std::vector<ir::Value> values = {});
  // Whether step `first` or a later one uses it.
  bool is_used_from(uint32_t first, MemoryId id) const;

  // Gives every memory a slot and the steps theirs; ends the use of this object.
  abi::Program finish();

 private:
  struct Draft {
    abi::Step step;
    std::vector<MemoryId> memories;
    std::vector<ir::Value> values;
  };

  void place_memories();
  abi::SlotId typed_slot(MemoryId id, const ir::Value& value);
  void fill(abi::Step& step, const std::vector<abi::SlotId>& slots) const;

  ModuleBuilder& module_;
  const ir::Graph& graph_;
  abi::Program program_;
  std::vector<Memory> memories_;
  std::vector<Draft> steps_;
};

}  // namespace tenon::passes
