// Attention of bf16 in words of two (kir::Op::kPanelDot), for targets with matrix tiles.
//
// All stands turned, a tile's 32 rows in the lanes: scores are keys times a panel of queries, sums
// are turned values times a panel of weights. Maxima, weights and their totals then need no lane of
// another row. A weight is three bf16 numbers whose sum it is, so that products and sums are those
// of f32; what is subnormal may count as 0.
#pragma once

#include "tenon/passes/attention_kernel.h"

namespace tenon::passes {

// Panels of the queries of the block's tiles, empty sums.
void start_words(AttentionKernel& a, kir::Val tiles);
// The block's keys in words and its values turned.
void pack_words(AttentionKernel& a);
// Where the scores of keys 2 `pair` + k stand, in lanes j.
inline kir::Val word_score_at(AttentionKernel& a, kir::Val pair, int64_t k, kir::Val j) {
  constexpr int64_t kRows = AttentionKernel::kWordRows;
  kir::Val line = a.b.mul(pair, a.b.i64(AttentionKernel::kPairStride));
  return a.b.add(a.b.add(line, a.b.i64(k * kRows)), j);
}

// Tile `t` of rows against a block of keys.
void emit_word_tile(AttentionKernel& a, kir::Val t);
// Turns the sums of the block's tiles back to where finish_row reads them.
void finish_words(AttentionKernel& a, kir::Val tiles);

}  // namespace tenon::passes
