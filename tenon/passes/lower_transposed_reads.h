// Loops that read a transposed operand: squares of the dimension that the operand has last and of
// the roots' own last one. The lines that a row of such a tile touches are read again by the next
// row; where nothing else reads the operand, its tile is copied along its own lines and turned.
#pragma once

#include <optional>

#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

// The dimension of the roots that runs along the last axis of a transposed operand; none where
// there is no such operand or a side is short.
std::optional<size_t> transposed_dim(const KernelFrame& frame);

// `across`: that dimension.
void lower_transposed_reads(KernelFrame& frame, size_t across);

}  // namespace tenon::passes
