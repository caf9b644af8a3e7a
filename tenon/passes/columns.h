// Columns: kernels whose loops are a permutation of the axes of their results. A softmax along
// axis 1 of (8, 512, 64) has 8 × 64 columns of 512 elements; what depends on a column alone, its
// maximum and its sum, is computed once a column, between two walks over it.
#pragma once

#include <optional>
#include <vector>

#include "tenon/ir/graph.h"

namespace tenon::passes {

// The axes of `shape` along which `value`, which is smaller, reduces values of that shape (sorted):
// those of the first reductions behind it. None where these differ, where the walk would be along
// rows (the last axis of more than one element is reduced), and where columns do not pay: they are
// too few, too tall to stay in a cache or too narrow for vectors.
std::optional<std::vector<int>> column_axes(const ir::Value& value, const Shape& shape);

// Whether `node` is a reduction of a value of `shape` over exactly the axes `walked`.
bool reduces_columns(const ir::Node& node, const Shape& shape, const std::vector<int>& walked);

// The axes of `shape` with loops of their own around, outermost first: all but `walked`, then
// `walked`.
std::vector<int> loop_order(const Shape& shape, const std::vector<int>& walked);

// Elements of the axes `walked`: the height of a column.
Dim column_height(const Shape& shape, const std::vector<int>& walked);

}  // namespace tenon::passes
