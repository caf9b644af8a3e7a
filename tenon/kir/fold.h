// Folding of constants and the algebra that holds exactly for every value.
#pragma once

#include <span>

#include "tenon/kir/builder.h"

namespace tenon::kir {

// The value of the instruction when it is known without emitting it: a constant, one of its
// arguments, or a simpler instruction; else null. Exact: NaN, infinities and signed zeros included.
// Mathematical functions are left alone, as are kDot2, and kMulAdd where one and two
// roundings differ.
Val fold(Builder& builder, Op op, Type type, Pred pred, std::span<const Val> args);

}  // namespace tenon::kir
