// Positions on an axis that a tensor of integers gives: negative ones count from the end, others
// outside are an IndexError while it runs.
#pragma once

#include <string_view>

#include "tenon/ir/op_def.h"
#include "tenon/kir/builder.h"

namespace tenon::ops {

// Raises TypeError [<op>_c1] unless the indices are integers.
void check_indices(std::string_view op, const ir::TensorType& indices);
// Raises IndexError [<op>_c2] where an axis that certainly has no elements is indexed.
void check_has_elements(std::string_view op, const Shape& shape, size_t axis, const Dim& indexed);

// The position, 0 … dim-1, that element `k` of `indices` names on axis `axis` of `dim` elements.
// Raises IndexError [<op>_index].
int64_t position_in(std::string_view op, const Literal& indices, int64_t k, int64_t dim,
                    int64_t axis);

// The same in a kernel, which checks it, for an index of dtype `dtype`.
struct Position {
  kir::Val at;      // 0 … dim-1 whatever the index is; 0 without elements
  kir::Val inside;  // i1: whether the index is one of the axis
};
Position emit_position(kir::Builder& b, kir::Val index, DType dtype, const Dim& dim);
// The same unchecked: negative indices from the end, all others as they are.
kir::Val emit_from_front(kir::Builder& b, kir::Val index, DType dtype, const Dim& dim);

}  // namespace tenon::ops
