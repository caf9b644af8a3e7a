// Cumulative sums: lines along the axis in parallel, each from its start to its end.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// Along an inner axis neighbouring lines run as the lanes of a vector; along the last axis one line
// is one grid index. f16, bf16 and f32 accumulate in f64, integers in the result's type.
void lower_scan(KernelFrame& frame);

}  // namespace tenon::passes
