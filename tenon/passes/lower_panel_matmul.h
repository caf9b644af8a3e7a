// Matrix products over operands packed in words (bf16 pairs, bytes by four): kir::Op::kPanelDot and
// the blocking around it.
//
// A block of rows of the left operand, as many as fill a quarter of the second cache, is copied,
// padded to whole words; then each panel is multiplied with the block's tiles of up to 32 rows. It
// is taken 256 words (32 KB) at a time, which stay in the first cache while the tiles pass by; the
// tiles meanwhile call the panel's next words into the second cache, and the sums of the block's
// rows and two panels stand in scratch memory (of all its panels where the common dimension is very
// long). The epilogue reads the finished sums of a panel from there, a few rows at a time, while
// the next panel is multiplied.
#pragma once

#include "tenon/passes/lower_matmul.h"

namespace tenon::passes {

// As emit_matmul, for a packed operand in words. Where it is not in memory, words are packed as
// they are needed.
void emit_panel_matmul(const MatmulEmission& emission);

}  // namespace tenon::passes
