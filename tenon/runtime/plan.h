// A module with numbers for its names: sizes, grids and places in the arena. Built once for a set
// of sizes and shared by all calls of those sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/runtime/dim_program.h"

namespace tenon::runtime {

struct SlotPlan {
  abi::SlotId root = 0;  // through aliases
  size_t offset = 0;     // kTemp: in the program's frame
  size_t bytes = 0;
  std::vector<int64_t> dims;
};

struct StepPlan {
  // LaunchStep
  int64_t grid = 0;
  int64_t chunk = 0;  // grid indices handed out at once
  std::vector<int64_t> dims;
  size_t scratch = 0;  // per thread
  // LaunchStep: its scratch memory; CallStep: the callee's frame. Offset in this frame.
  size_t offset = 0;
};

struct ProgramPlan {
  std::vector<SlotPlan> slots;
  std::vector<StepPlan> steps;
  size_t frame = 0;     // bytes, with those of callees
  size_t pointers = 0;  // entries of the pointer stack, with those of callees
};

struct Plan {
  std::vector<int64_t> symbols;
  std::vector<ProgramPlan>
      programs;  // as in the module; empty for programs that `root` never calls
};

// Compiles a module's dims once.
class Planner {
 public:
  // `symbols` holds the names that arguments bind, in the order of their values.
  Planner(std::shared_ptr<const abi::Module> module, SymbolTable symbols);

  const SymbolTable& symbols() const { return symbols_; }
  const DimProgram& dim(abi::DimId id) const { return dims_[id]; }

  // Plans `root` and everything it calls for these values of the names (a prefix of the symbol
  // table). Raises ShapeError for a negative size, ValueError for sizes that do not fit each other.
  std::shared_ptr<const Plan> plan(uint32_t root, std::vector<int64_t> values) const;

 private:
  class Builder;
  std::shared_ptr<const abi::Module> module_;
  SymbolTable symbols_;
  std::vector<DimProgram> dims_;
};

}  // namespace tenon::runtime
