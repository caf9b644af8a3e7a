// Region updates: the kernel writes the elements of the region alone, into memory that already
// holds the value to update.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

void lower_slice_update(KernelFrame& frame);

}  // namespace tenon::passes
