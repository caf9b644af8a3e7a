// Weighted sums of values, and the results that follow from them.
#pragma once

#include "tenon/passes/attention_kernel.h"

namespace tenon::passes {

// Converts the block's values.
void pack_values(AttentionKernel& a);
// Shrinks the sums of the tile's rows and adds the block's values times the tile's weights.
void add_values(AttentionKernel& a);
// Stores the result of row r of the block. An infinite or NaN one of a row that does not see every
// key, or whose weights are sums, is computed again over those that it sees: a weight of 0 does not
// hide such a value in a product.
void finish_row(AttentionKernel& a, kir::Val r);

}  // namespace tenon::passes
