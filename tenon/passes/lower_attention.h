// Attention as one streaming kernel.
//
// The grid runs over batches, key heads and blocks of rows; the rows of a key head are the queries
// of all heads that share it. A block of rows goes over the keys in blocks: scores of a tile of
// rows against a block of keys stand in scratch memory (attention_scores.h), are turned into
// weights (attention_weights.h) and multiply the values into the tile's sums (attention_values.h),
// which shrink whenever the base of the weights is raised (M. Milakov and N. Gimelshein, "Online
// normalizer calculation for softmax", 2018; T. Dao et al., "FlashAttention", 2022). Blocks that no
// row of a tile sees are skipped. Both products keep their accumulators in registers as the kernels
// of lower_matmul.h do. Keys are turned a block at a time, once for a block of rows; a few rows
// take scalar products with keys as they stand instead. While tiles are multiplied, the next keys,
// values and queries are called into the caches.
//
// Blocks of keys and tiles of rows do not depend on the number of threads, so results do not
// either.
#pragma once

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// The body of a kAttention group. `wide`: the target has 32 vector registers.
void lower_attention(KernelFrame& frame, bool wide);

}  // namespace tenon::passes
