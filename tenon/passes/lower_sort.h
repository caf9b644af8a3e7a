// Sorts along the last axis, one row a grid index or many rows together.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// Rows of at most this many elements are sorted many at once.
inline constexpr int64_t kShortRow = 256;

// Short rows: each lane has a row of its own. A sorting network orders keys that no two elements
// share; where equal elements differ in their bits (-0), and with `from_bit`, each element's place
// is the number of those before it. Longer ones: a radix sort from the lowest digit up, which
// passes over digits that a whole row shares. Both are stable.
void lower_sort(KernelFrame& frame);

// Pairs of sorted rows become one: each lane finds by bisection where its part of the result begins
// in both rows (Odeh, Green, Mwassi, Shmueli, Birk: Merge Path, 2012) and merges from there.
void lower_merge(KernelFrame& frame);

}  // namespace tenon::passes
