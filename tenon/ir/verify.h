// Stage specs: what a graph may hold after each stage, as code. Run after every pass in debug
// builds and tests.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::ir {

enum class Stage : uint8_t {
  kTraced,      // any op; types as inferred
  kSimplified,  // no composites left inside, no dead or duplicate nodes, calls only to bodies
};

// Raises InternalError naming graph, node and broken rule: operand order, types equal to infer(),
// parameters first, updates only of writable parameters with equal types, call operands equal to
// the callee's parameters, no recursion between bodies, unique body names.
void verify(const GraphPtr& graph, Stage stage);

}  // namespace tenon::ir
