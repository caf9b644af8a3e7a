// Products with packed quantised weights as kernels.
//
// Columns are worked off in panels of 32 lanes, rows in tiles whose sums stay in registers; every
// task takes a block of panels that fits the second cache beside all its rows. A product of few
// rows is one pass over the panels and is bound by memory.
//   exact: 16 or 32 codes at a time become f32 in registers, code · scale + offset, and are shared
//     by the rows of the tile.
//   int8: one dot4us takes four codes of a column and four activations; after each block of 32 the
//     integer sums are scaled. Codes have their zero at a positive number: the sums begin at what
//     that adds.
#pragma once

#include "tenon/passes/lower_matmul.h"

namespace tenon::passes {

// `emission.matmul` is qmatmul_exact or qmatmul_int8; its operands are in memory. Partial sums are
// not used. Fills in body, grid and cost of the kernel.
void emit_quantized_matmul(const MatmulEmission& emission);

}  // namespace tenon::passes
