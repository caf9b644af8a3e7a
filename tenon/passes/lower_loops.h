// The loop nest of a kLoops group (see lower_group.h for the choice of nests).
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

void lower_loops(KernelFrame& frame);

}  // namespace tenon::passes
