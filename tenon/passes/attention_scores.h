// Scores of a tile of rows against a block of keys, in powers of two: q·kᵀ times scale and log2 e,
// with the mask, and -inf where a row does not see a key.
#pragma once

#include "tenon/passes/attention_kernel.h"

namespace tenon::passes {

// The factor of scores (of a float mask) that makes them exponents of two.
inline constexpr double kLog2E = 0x1.71547652b82fep0;

// Copies the block's keys into panels [depth, kPanel], turned.
void pack_keys(AttentionKernel& a);
// Stores the scores of the panels that the tile meets.
void emit_scores(AttentionKernel& a);
// Whether a key of a panel exists; null where it always does.
kir::Val inside_keys(AttentionKernel& a, kir::Val key);
// The mask's element for a row and key, read where `inside` holds, everywhere without one.
kir::Val mask_of(AttentionKernel& a, const AttentionKernel::Row& row, kir::Val key,
                 kir::Val inside);
// A float mask's element in the type of scores. A finite number stays one in powers of two, so that
// a row of the lowest numbers is no row without keys.
kir::Val finite_power(AttentionKernel& a, kir::Val given);
// A score with a mask's element, an i1 or a number of the type of scores.
kir::Val masked(AttentionKernel& a, kir::Val given, kir::Val score);
// The score of a row with key t, alone.
kir::Val score_of(AttentionKernel& a, const AttentionKernel::Row& row, kir::Val t);

// Where the score of a tile's row stands.
inline kir::Val score_at(AttentionKernel& a, int64_t r, kir::Val c) {
  return a.b.add(a.b.i64(r * AttentionKernel::kScoreStride), c);
}

// The inner kernel of both products: accumulators of a tile's rows, from `init`, over lo ≤ k < hi.
std::vector<kir::Val> multiply_rows(AttentionKernel& a, kir::Val lo, kir::Val hi,
                                    std::span<const kir::CarriedSpec> init,
                                    const std::function<kir::Val(int64_t, kir::Val)>& left,
                                    const std::function<kir::Val(kir::Val)>& right);

}  // namespace tenon::passes
