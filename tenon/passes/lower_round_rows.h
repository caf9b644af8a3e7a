// round_rows as a kernel: one grid index a block of 32 elements, which stays in registers or in the
// first cache between the search for its largest element and the rounding.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

void lower_round_rows(KernelFrame& frame);

}  // namespace tenon::passes
