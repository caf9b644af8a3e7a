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
// Tile `t` of rows against a block of keys.
void emit_word_tile(AttentionKernel& a, kir::Val t);
// Turns the sums of the block's tiles back to where finish_row reads them.
void finish_words(AttentionKernel& a, kir::Val tiles);

}  // namespace tenon::passes
