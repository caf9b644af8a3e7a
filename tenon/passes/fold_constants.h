// Evaluates what depends on constants alone, by the ops' reference evaluation.
//
// Needs: canonical form. Promises: no operation on constants is left whose result is small: at most
//   4096 elements, or no larger than its operands and pure movement of at most 2^22 elements.
//   Index ramps and other leaves stay operations, so that large ones never become data. An
//   evaluation that raises (an index out of range) is left to the run-time.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr fold_constants(const ir::GraphPtr& graph);

}  // namespace tenon::passes
