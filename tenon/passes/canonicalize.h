// Brings movement, casts and operand order into one form.
//
// Needs: nothing. Promises: no squeeze or expand_dims (they are reshapes), no identity reshape,
//   transpose, broadcast or cast, no two of one kind in a row, no transpose that moves only
//   dimensions of 1; the constant of a commutative op stands right; elementwise ops broadcast by
//   themselves where their other operands already have the shape; a constant of equal elements is a
//   broadcast scalar.
// Stands first, so that later passes know one spelling of each thing.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr canonicalize(const ir::GraphPtr& graph);

}  // namespace tenon::passes
