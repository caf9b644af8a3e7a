// Sizes become as static as what is known of them.
//
// Needs: folded constants. Promises: every result type is what inference gives for its operands as
//   they are now; the size of static dimensions is a constant.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr propagate_shapes(const ir::GraphPtr& graph);

}  // namespace tenon::passes
