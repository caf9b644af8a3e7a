// A group becomes a kernel.
//
// The nest of a kLoops group of shape d0 × … × dr-1 (merged dimensions):
//   - one dimension: the grid runs over elements, in vectors;
//   - else the grid runs over combinations of the leading dimensions and vectors over the last one;
//     with row reductions, over rows: what depends on the row alone stands before the inner loop;
//   - with reductions along other axes than the last, over strips of columns (lower_columns.h);
//   - few long rows are cut into blocks, so that both threads have work;
//   - a last dimension of a few elements is flattened into the vector loop;
//   - a transposed read goes through square tiles, copied and turned in registers, and a transpose
//     that stands alone through bands of rows;
//   - rows that a take reads are called into the caches before their turn.
#pragma once

#include "tenon/kir/kernel.h"
#include "tenon/passes/group.h"
#include "tenon/passes/kernel_frame.h"
#include "tenon/passes/registers.h"

namespace tenon::passes {

struct GroupKernel {
  kir::Kernel kernel;
  // The kernel's argument buffers: inputs first, then roots that have a buffer of their own.
  std::vector<ir::Value> buffers;
};

// For every kind of group but kCall, kHost and kView. The kernel of an update writes its elements
// alone, into a buffer that already holds operand 0; its only root is that buffer. `in_place`:
// roots that take the memory of an elementwise input.
GroupKernel lower_group(const Group& group, const std::string& name, const InPlace& in_place = {},
                        Registers registers = Registers::kMany);

}  // namespace tenon::passes
