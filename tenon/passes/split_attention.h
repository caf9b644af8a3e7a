// Cuts attention of few rows (decode steps) into pieces of the keys, so that every thread has work
// although there are few heads.
//
// Needs: canonical form. Promises: attention of at most six rows of a key head, with fewer than
//   eight key heads in all (or a number that is not known), to more keys than one piece may hold
//   and of values of a known size, becomes attention with `part` and the combination of its pieces.
//   The number of pieces follows from the number of keys alone.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr split_attention(const ir::GraphPtr& graph);

}  // namespace tenon::passes
