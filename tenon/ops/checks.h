// Checks that many ops share, with the one shape of error text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/op_def.h"

namespace tenon::ops {

// TypeError [<op>_dtype] unless `dtype` is of the class.
void check_dtype(std::string_view op, DType dtype, ir::DTypeClass cls);
// TypeError [<op>_dtypes] unless all operands have one dtype; returns it.
DType check_same_dtype(const ir::InferArgs& args);

// The axis in 0 … rank-1 of one in -rank … rank-1. ValueError [<op>_axis] otherwise.
int64_t normalize_axis(std::string_view op, int64_t axis, size_t rank);
// Several, sorted. ValueError [<op>_axis] when one is out of range or named twice.
std::vector<int64_t> normalize_axes(std::string_view op, const std::vector<int64_t>& axes,
                                    size_t rank);

// The common shape of operands that broadcast against each other. A symbolic dimension against
// another one must be equal for all values of the names. ShapeError [<op>_broadcast] otherwise.
Shape broadcast_shapes(std::string_view op, const std::vector<Shape>& shapes);

// Whether two dimensions are the same for all values of the names.
bool same_dim(const Dim& a, const Dim& b);

// Runs `f`, adding `location` to errors that have none: for checks outside make_node.
void with_location(const ir::LocationPtr& location, const std::function<void()>& f);

// "a: f32[2, 3]   b: f32[4]" for a second line of an error.
std::string operand_types(std::span<const ir::TensorType> types);

}  // namespace tenon::ops
