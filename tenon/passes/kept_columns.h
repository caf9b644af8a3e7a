// Values that a kernel over columns computes once and keeps in scratch from one walk to the next.
#pragma once

#include <vector>

#include "tenon/passes/group_body.h"

namespace tenon::passes {

struct KeptColumns {
  struct Kept {
    ir::Value value;
    size_t slot;  // of scratch; values of one dtype share it, one after the other
  };
  std::vector<Kept> values;       // in the order of creation
  std::vector<DType> slots;       // what each holds, one element for each of the columns
  int64_t element_bytes() const;  // of all slots together
};

// The reductions along the columns of `body`, in an order in which they can run: a walk each.
std::vector<ir::Value> column_reductions(const GroupBody& body);

// What at least two walks of `body` (`reductions`, then the results) read, and that depends on no
// reduction or is costly. Only what is read at the index of a walk alone.
KeptColumns columns_to_keep(const GroupBody& body, const std::vector<ir::Value>& reductions);

}  // namespace tenon::passes
