// The loops that a grid index of a kLoops group runs itself.
#pragma once

#include <functional>

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// The index along the dimensions `outer` of number `g` of their combinations, row-major.
ops::Index grid_index(kir::Builder& builder, const Shape& outer, kir::Val g);

// Runs `body` along the roots' last dimension, in vectors.
void row_loop(KernelFrame& frame, const std::function<void(kir::Val)>& body);

// Loops over the dimensions of the roots that `index` lacks, the last one in vectors unless the
// group is scalar, and stores the roots there. `index` is left as it was.
void inner_loops(KernelFrame& frame, ops::Index& index);

}  // namespace tenon::passes
