// Cumulative sums: lines along the axis in parallel, each from its start to its end.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// Along an inner axis neighbouring lines run as the lanes of a vector. Along the last axis 16 lines
// do, which are turned a tile at a time; fewer than four lines are walked one by one. Every line is
// summed from its start to its end: f16, bf16 and f32 in f64, integers in the result's type.
void lower_scan(KernelFrame& frame);

}  // namespace tenon::passes
