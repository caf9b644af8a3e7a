// Fusion: partitions one graph into groups, each of which becomes one kernel or step.
//
// Everything that pulls (elementwise, movement, reductions) is inlined into its consumers unless
// that computes too much again. Walking from results to parameters, a value becomes memory when
//   - it is a result, or an operand of a call, a host operation or a product;
//   - its consumers stand in several groups that cannot be one, and it is more than cheap;
//   - evaluating it where it is used would run it more often than it has elements (a reduction or
//     a costly value under a broadcast loop that is not inside its own index);
//   - its group has grown to the limit.
// A group whose first such reduction would run once a column if the loops along the columns stood
// inside all others takes that order of loops (columns.h).
// Groups of one iteration shape without a path between them merge where they share a value; a
// value in memory whose readers have its shape is stored by the readers' group.
#pragma once

#include "tenon/passes/group.h"

namespace tenon::passes {

// `explain`: Partition::apart is filled.
Partition fuse(const ir::Graph& graph, bool explain = false);

}  // namespace tenon::passes
