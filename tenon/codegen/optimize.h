// The passes that run on a module of kernels before LLVM selects instructions.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace tenon::codegen {

// A short list: kernels arrive vectorised and simplified, so that only sharing, folding, hoisting
// out of loops and clean-up remain. Loops are never turned into library calls.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tenon::codegen
