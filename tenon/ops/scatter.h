// scatter and put_along_axis: what their evaluation and their kernels share.
#pragma once

#include "tenon/ir/op_def.h"
#include "tenon/kir/builder.h"

namespace tenon::ops {

// What an update does to the element that it meets.
enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMin, kMax };

bool is_scatter(const ir::Node& node);
// Of a scatter or put_along_axis.
ScatterMode scatter_mode(const ir::Node& node);
// Elements of `dtype` as they are stored: what an update leaves of `old`.
kir::Val emit_scattered(kir::Builder& b, ScatterMode mode, DType dtype, kir::Val old,
                        kir::Val update);

}  // namespace tenon::ops
