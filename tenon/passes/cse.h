// Common subexpressions: equal nodes become one.
//
// Needs: nothing. Promises: no two nodes of a graph have the same op, operands and attributes.
//   Constants are compared by content. Operations have no effects, so all may be shared.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr cse(const ir::GraphPtr& graph);

}  // namespace tenon::passes
