// Operands for the samples of the op table, and how far a result may be from the reference.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/ops/single_op_kernel.h"

namespace tenon::ops {

// The samples that stand beside an op; none where it has none.
std::vector<ir::Sample> samples_of(const ir::OpDef& op);
// The ops that have some, sorted by name.
std::vector<const ir::OpDef*> sampled_ops();

// Values of the names n, m and k that samples use: usual ones, 1, 0, and odd and long ones.
const std::vector<Sizes>& sample_sizes();

// Random elements in the range of `sample`; with `specials` every third one is NaN, an infinity, a
// zero, a subnormal number or an end of the integers.
Literal random_literal(DType dtype, std::vector<int64_t> dims, const ir::Sample& sample,
                       bool specials, std::mt19937& rng);
// Whether the op has an answer for special values that every path gives.
bool takes_specials(const ir::OpDef& op);

// Empty when `got` is right: bit for bit, but for functions of the kMath rows (a few ulp) and for
// sums and products (a few ulp of what was added).
std::string difference(const ir::OpDef& op, const Literal& wanted, const Literal& got);

}  // namespace tenon::ops
