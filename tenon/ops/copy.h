// Copies of elements whatever their type: how movement ops evaluate.
#pragma once

#include <span>
#include <vector>

#include "tenon/ir/op_def.h"
#include "tenon/ops/lanes.h"

namespace tenon::ops {

// A literal of type `to` whose element at index i is element first + Σ i·strides of `from`.
Literal copy_strided(const Literal& from, int64_t first, std::span<const int64_t> strides,
                     const ir::ConcreteType& to);

// Writes all of `from` into `to` at first + Σ i·strides (strides per dimension of `from`).
void write_strided(const Literal& from, Literal& to, int64_t first,
                   std::span<const int64_t> strides);

// A literal with its own memory.
Literal clone(const Literal& x);

}  // namespace tenon::ops
