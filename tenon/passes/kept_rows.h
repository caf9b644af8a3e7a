// Values that a kernel over rows computes once a row and keeps in scratch: the exponentials of a
// softmax.
#pragma once

#include <functional>
#include <vector>

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// What is costly and read both by a reduction along the row and by something else, in the order of
// creation. None where a row is too long to keep, or one row might ask for elements of another.
std::vector<ir::Value> values_to_keep(const KernelFrame& frame);

// Inside the grid's loop, at the row with that index: runs a reduction that reads `value`, whose
// loop computes and keeps the row; later the elements are loaded from there. `before` runs for each
// element before it is computed and finds there what the row kept before.
void keep_row(KernelFrame& frame, const ir::Value& value, const ops::Index& index,
              const std::function<void(kir::Val)>& before);

}  // namespace tenon::passes
