// Rows of results that are written past the caches, a softmax of a large matrix: such writes hold
// up a loop that does little else. So each row's results are written by the loop that computes what
// the next row keeps, just before that takes their place.
#pragma once

#include <optional>
#include <vector>

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// The values, one a row, that the roots are computed from besides `kept` and what is in memory;
// none when they need more than that.
std::optional<std::vector<ir::Value>> scalars_beside(const KernelFrame& frame,
                                                     const ir::Value& kept);

// The kernel, one grid index a row. `kept` is what a row keeps (kept_rows.h); `scalars`, one of
// each a row, stay in scratch until the row is written.
void lower_rows_in_turn(KernelFrame& frame, const ir::Value& kept,
                        const std::vector<ir::Value>& scalars);

}  // namespace tenon::passes
