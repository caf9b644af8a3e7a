// Rewrites the functions of kernel.h (exp … hypot) into arithmetic: polynomials, range reductions
// and tables, for f32 and f64, at most 2.5 ulp, right for subnormals,
// infinities, NaN, signed zeros and huge arguments. One definition serves every target.
#pragma once

#include "tenon/kir/builder.h"

namespace tenon::kir {

// Emits the expansion of math op `op` (is_math) on `args` (all f32 or all f64).
Val emit_math(Builder& builder, Op op, std::span<const Val> args);

// Rewrites every math instruction of the kernel. Afterwards none is left.
void expand_math(Kernel& kernel);

}  // namespace tenon::kir
