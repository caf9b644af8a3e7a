// A transpose of an operand in memory, and nothing else: bands of the operand's rows are turned on
// the way from there into the result. As many rows as a band has are read side by side, each along
// its line, which is what the machine foresees.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

bool is_transpose(const KernelFrame& frame);

// `across`: the dimension of the result that is the operand's last.
void lower_transpose(KernelFrame& frame, size_t across);

}  // namespace tenon::passes
