// Cuts reductions of much to little in two, so that every thread has work.
//
// Needs: canonical form. Promises: a reduction to fewer than 16 elements from 65 536 or more (or a
//   number that is not known) first reduces pieces whose number does not depend on the threads: the
//   result is the same on every machine. Sums of f16 and bf16 keep f32 between the two.
//   So does argmax or argmin of an axis of 65 536 elements or more.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr split_reductions(const ir::GraphPtr& graph);

}  // namespace tenon::passes
