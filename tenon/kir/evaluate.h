// Runs a kernel on host memory, one lane at a time: the oracle of code generation, and the way
// kernels run where there is no code generator. Vector loops run in order, so their reductions
// round as a plain sum does.
#pragma once

#include "tenon/kir/kernel.h"
#include "tenon/kir/scalar.h"

namespace tenon::kir {

// What abi::KernelArgs holds.
struct EvalArgs {
  void* const* buffers = nullptr;  // the argument buffers, in order
  const int64_t* dims = nullptr;   // values of Kernel::dims
  void* scratch = nullptr;         // Kernel::scratch_bytes bytes
  int64_t* status = nullptr;       // receives the code of a failed check
};

// Runs grid indices begin ≤ i < end. The kernel must be one that verify() takes. Raises
// InternalError for a division by zero or a table index out of range.
void evaluate(const Kernel& kernel, const EvalArgs& args, int64_t begin, int64_t end,
              const ScalarOptions& options = {});

}  // namespace tenon::kir
