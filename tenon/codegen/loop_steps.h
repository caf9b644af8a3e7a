// How the vector loops of a kernel run on a level, for people.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/codegen/codegen.h"

namespace tenon::codegen {

// Elements that one iteration takes: lanes times the vectors that a value holds at once.
struct LoopSteps {
  int64_t grid = 1;            // of the loop over the grid; 1: it is no vector loop
  std::vector<int64_t> inner;  // of the vector loops inside it: distinct ones, largest first
};

// For `kernel` as compile() would emit it.
LoopSteps loop_steps(const kir::Kernel& kernel, Isa isa);

}  // namespace tenon::codegen
