// Matrix products over operands packed in words (bf16 pairs, bytes by four): kir::Op::kPanelDot and
// the blocking around it.
//
// A tile of up to 32 rows of the left operand is copied, padded to whole words, and multiplied with
// one panel after another. Sums stand in scratch memory: those of one tile and panel, or of a whole
// block of rows and panels while the common dimension is worked off in blocks that keep the tile in
// the first cache; the block's panels and sums fill about half of the second. The epilogue reads
// the finished sums.
#pragma once

#include "tenon/passes/lower_matmul.h"

namespace tenon::passes {

// As emit_matmul, for a packed operand in words, which must be in memory.
void emit_panel_matmul(const MatmulEmission& emission);

}  // namespace tenon::passes
