// What an instruction set level offers, and LLVM's target machine for it.
#pragma once

#include <llvm/Target/TargetMachine.h>

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
  bool is_arm;
  const char* triple;
  const char* cpu;
  const char* features;
};

const Target& target_of(Isa isa);

// The machine for a level, made once per thread and kept. Raises UnsupportedError when this build
// of LLVM lacks the target.
llvm::TargetMachine& machine_of(Isa isa);

}  // namespace tenon::codegen
