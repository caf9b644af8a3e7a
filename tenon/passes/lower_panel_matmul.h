// Matrix products over operands packed in words (bf16 pairs, bytes by four): kir::Op::kPanelDot and
// the blocking around it.
//
// A block of rows of the left operand, as many as fill half of the second cache, is copied, padded
// to whole words; then each panel is multiplied with the block's tiles of up to 32 rows, over the
// whole common dimension where that is not very long (otherwise the sums of the block stand in
// scratch memory meanwhile). The epilogue reads the finished sums of a tile and panel from the
// first cache.
#pragma once

#include "tenon/passes/lower_matmul.h"

namespace tenon::passes {

// As emit_matmul, for a packed operand in words, which must be in memory.
void emit_panel_matmul(const MatmulEmission& emission);

}  // namespace tenon::passes
