// scatter and put_along_axis: the kernel writes updates into memory that already holds the operand.
//
// The operand is outer × axis × inner. The grid runs over lines, which are the elements of one
// outer index, cut into blocks of columns where lines are few; updates of a line meet it one after
// another in the order of the indices, a row of columns at a time. No element is written by two
// grid indices, so results do not depend on the number of threads.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

void lower_scatter(KernelFrame& frame);

}  // namespace tenon::passes
