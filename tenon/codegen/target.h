// What an instruction set level offers, and LLVM's target machine for it.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "tenon/codegen/codegen.h"

namespace tenon::codegen {

struct Target {
  Isa isa;
  int vector_bits;   // of one preferred vector register
  int vector_regs;   // architectural vector registers
  bool has_fma;      // a*b + c with one rounding
  bool has_f16c;     // f16 <-> f32 conversions
  bool has_round;    // floor, ceil, trunc and rint as instructions
  bool has_masks;    // predicated loads and stores of every element size
  bool has_masks32;  // predicated loads and stores of 32- and 64-bit elements
  bool has_dots;     // dot products of bytes and of bf16 pairs as instructions
  bool has_tiles;    // matrix tiles of bf16 and of bytes
  bool is_arm;
  const char* triple;
  const char* cpu;
  const char* features;
};

const Target& target_of(Isa isa);
// The form of the kernel that fits the target: itself or its `narrow` one.
const kir::Kernel& kernel_for(const kir::Kernel& kernel, const Target& target);

// LLVM's machine for a level, lent to one compilation and kept for the next one: making it costs
// milliseconds, and it must not be shared between threads at work.
class LentMachine {
 public:
  // Raises UnsupportedError when this build of LLVM lacks the target.
  explicit LentMachine(Isa isa);
  ~LentMachine();
  LentMachine(const LentMachine&) = delete;
  LentMachine& operator=(const LentMachine&) = delete;

  llvm::TargetMachine& get() const { return *machine_; }

 private:
  Isa isa_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

}  // namespace tenon::codegen
