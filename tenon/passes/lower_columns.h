// The kernel of a group that walks columns (columns.h).
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// A grid index is a strip: some neighbouring columns (lanes) of one combination of the axes that
// are neither walked nor the last one. It is walked once for each reduction and once for the
// results. What several walks need, operands and costly values, stays in scratch from the first of
// them on: lines of a strip that stand a power of two apart in memory would drive each other out of
// the caches. A strip is as wide as the second cache allows, so that results are whole lines.
void lower_columns(KernelFrame& frame);

}  // namespace tenon::passes
