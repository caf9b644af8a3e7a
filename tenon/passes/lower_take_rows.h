// A take of rows: the machine cannot foresee at which row the next one stands, so the kernel calls
// it into the caches a few rows ahead.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// Whether the only root is rows of an operand [rows, length] in memory, long ones that are written
// past the caches, at positions that come from elsewhere.
bool takes_rows(const KernelFrame& frame);

// The kernel of such a group: one grid index a row of the result.
void lower_take_rows(KernelFrame& frame);

}  // namespace tenon::passes
