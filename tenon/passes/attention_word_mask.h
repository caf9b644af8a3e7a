// The mask of attention in words (attention_words.h).
#pragma once

#include <array>

#include "tenon/passes/attention_kernel.h"

namespace tenon::passes {

// Reads the mask of the block's keys where it is one for all rows of a tile.
void pack_mask(AttentionKernel& a);
// Reads that of the tile's rows where it is not.
void read_mask(AttentionKernel& a);
// Gives the scores of a pair of keys their mask, in lanes j; in powers of two where that is float.
std::array<kir::Val, 2> mask_pair(AttentionKernel& a, kir::Val pair, kir::Val j);

}  // namespace tenon::passes
