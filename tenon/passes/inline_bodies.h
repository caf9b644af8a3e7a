// Inlines bodies where sharing them gains nothing.
//
// Needs: nothing. Promises: a body that one call uses, or of at most eight operations, is part of
//   its caller, where it fuses; every other body stays shared, so that a stack of equal layers is
//   compiled once.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

// Takes and returns a module (the entry graph).
ir::GraphPtr inline_bodies(const ir::GraphPtr& graph);

}  // namespace tenon::passes
