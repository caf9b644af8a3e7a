// What generated code and the run-time share. Plain C layout; a change here is a new artifact
// format version.
#pragma once

#include <cstdint>

namespace tenon::abi {

// Functions that images of earlier versions call; code generated now calls nothing. Index 0 is the
// table's size in entries. It stays as it is for saved files.
struct RuntimeTable {
  int64_t size;
  double (*fmod)(double, double);
  double (*pow)(double, double);
  double (*fma)(double, double, double);  // for CPUs without the instruction
};

struct KernelArgs {
  void* const* buffers;  // the kernel's argument buffers, in order
  const int64_t* dims;   // the values of kir::Kernel::dims
  void* scratch;         // this thread's scratch memory, 64-byte aligned, or null
  int64_t* status;       // 0, or the code of a failed kir check (any one of several)
  const RuntimeTable* table;
};

// Runs grid indices begin ≤ i < end. May be called from many threads for disjoint ranges.
using KernelFn = void (*)(const KernelArgs* args, int64_t begin, int64_t end);

}  // namespace tenon::abi
