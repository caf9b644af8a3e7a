// A compiled module as data: what the compiler hands to the run-time, in process or in an artifact.
// It holds no pointers into anything and no code but the images.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/base/literal.h"

namespace tenon::abi {

// Index into Module::dims. Every size, stride and extent of a module is one of these expressions;
// they are evaluated once a call, in order, over the names bound from the arguments' shapes and
// from the machine (kir::kDimThreads, …).
using DimId = uint32_t;
using SlotId = uint32_t;

// Memory that steps read and write: dense, row-major.
struct Slot {
  enum class Kind : uint8_t {
    kArgument,  // position `ref` among the program's arguments
    kResult,    // position `ref` among its results: memory given by the caller
    kTemp,      // in the arena while steps first … last run
    kConstant,  // Module::constants[ref]
    kAlias,     // the memory of slot `ref` (a reshape, or a result written in place)
  };
  Kind kind = Kind::kTemp;
  DType dtype = DType::kF32;
  std::vector<DimId> dims;
  DimId bytes = 0;
  uint32_t ref = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

// Runs kernel `kernel` over grid indices 0 … grid, split over the pool.
struct LaunchStep {
  uint32_t kernel = 0;
  std::vector<SlotId> buffers;
  std::vector<DimId> dims;
  DimId grid = 0;
  DimId scratch_bytes = 0;    // per thread
  DimId bytes_per_index = 0;  // cost of one grid index, for the grain
  DimId ops_per_index = 0;
};

// Runs another program of the module (a shared body).
struct CallStep {
  uint32_t program = 0;
  std::vector<SlotId> arguments;
  std::vector<SlotId> results;
};

// Copies a slot whole. Nothing happens when both are one memory.
struct CopyStep {
  SlotId from = 0;
  SlotId to = 0;
};

// Evaluates a node of the portable graph by its op's reference evaluation: ops without kernels.
struct EvalStep {
  uint32_t graph = 0;  // index among the module's graphs, in the order of ir::reachable_graphs
  uint32_t node = 0;   // index in Graph::nodes()
  std::vector<SlotId> operands;
  std::vector<SlotId> results;
};

using Step = std::variant<LaunchStep, CallStep, CopyStep, EvalStep>;

// The slots of arguments stand first, then those of results. A result's slot is kResult, or kAlias
// when the result is the memory of another slot (the run-time then copies it to where the caller
// wants it, unless it is there already).
//
// A body's results are ir::Graph::outputs(): results, then the new values of updates. The entry's
// results are the graph's results alone: its updates are written by its steps into the slots of the
// writable arguments, after the last read of the old value.
//
// A body may overwrite an argument in place: then a result is a kAlias of it. The plan of the
// caller passes memory that it no longer needs (or a copy) and names the same memory as that
// result.
struct Program {
  std::string name;
  std::vector<Slot> slots;
  std::vector<Step> steps;
  uint32_t arguments = 0;
  uint32_t results = 0;
};

struct KernelInfo {
  std::string name;
  std::vector<std::string> origins;  // fused operations
  std::string text;                  // kir text; empty unless kept for explain()
};

// Machine code of all kernels for one instruction set.
struct Image {
  std::string
      level;  // "x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4-dot", "x86-64-v4-amx", "aarch64"
  std::vector<std::byte> bytes;
  std::vector<uint64_t> offsets;  // one per kernel
};

// Data bound by name when a program is loaded or called. Its value enters `setup`.
struct External {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<DimId> dims;
};

// How a tensor argument binds names: the first occurrence of a bare name binds it.
struct Module {
  std::vector<Dim> dims;
  std::vector<Program> programs;  // bodies before their callers
  uint32_t entry = 0;             // the program that a call runs
  // What is computed once from constants and externals (packed weights): a program whose arguments
  // are the externals in order and whose results are appended to the entry's arguments.
  // kNoProgram: nothing; then the externals themselves are appended.
  uint32_t setup = kNoProgram;
  // One for each result of `setup`, or none at all. Results with equal keys are equal when the
  // externals are: programs bound to the same data compute and keep one of them.
  std::vector<std::string> setup_keys;
  std::vector<External> externals;
  std::vector<Literal> constants;
  std::vector<KernelInfo> kernels;
  std::vector<Image> images;

  static constexpr uint32_t kNoProgram = 0xffffffffu;
};

}  // namespace tenon::abi
