// Mathematical functions of many doubles, for runs over all floats: by the C library's vector
// functions where it has them (glibc on x86-64 with AVX-512; within 4 ulp of a double), else by
// kir::wide_reference_math.
#pragma once

#include <span>

#include "tenon/kir/kernel.h"

namespace tenon::codegen::test {

// out[i] = op(in[i]).
void vector_reference(kir::Op op, std::span<const float> in, std::span<double> out);

}  // namespace tenon::codegen::test
