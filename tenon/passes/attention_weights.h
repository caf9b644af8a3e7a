// Weights from scores: 2^(score - base), where the base of a row is the maximum of its scores so
// far, and what the sums so far shrink by when it grows.
#pragma once

#include "tenon/passes/attention_kernel.h"

namespace tenon::passes {

// How far, in powers of two, a score may pass the base of its row before that is raised: sums may
// be 16 times as large as with the maximum for a base.
inline constexpr double kMargin = 4;

// 2^x for x ≤ 127, at most 1.5 ulp away; 0 below 2^-125 and NaN of
// NaN.
kir::Val weight_of(AttentionKernel& a, kir::Val x);
// Turns the tile's scores of this block into weights, adds them to the totals of its rows.
void emit_weights(AttentionKernel& a);
// The sum of the weights of row r of the block.
kir::Val total_of(AttentionKernel& a, kir::Val r);

}  // namespace tenon::passes
