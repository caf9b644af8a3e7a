// Cuts long rows to be sorted into pieces that threads sort, and merges those.
//
// Needs: canonical form. Promises: sorts of fewer than 16 rows of 65 536 elements or more (or of a
//   number that is not known) become sorts of 2 to 8 pieces of equal size and merges of pairs.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr split_sorts(const ir::GraphPtr& graph);

}  // namespace tenon::passes
