// Turns matrix products into products over packed operands where a GEMM kernel serves them.
//
// Needs: inlined bodies where they will be inlined, folded constants, simplified movement.
// Promises: every float `matmul` whose right operand is constant (computed from constants and
//   external data alone) with at least four columns, or that has enough rows to pay for packing
//   (two when that operand is a transposed one, else 64), becomes matmul_packed(a, matmul_pack(b));
//   of fewer rows, or of 2 to 64 columns, it reads the right operand in place; the others stay and
//   are lowered by their element form. The same holds for bf16 by bf16, and for i32 products of i8
//   or u8 by i8, cast to i32, of 16 columns and more, whose operand is packed in words: up to 64
//   rows by the product's own kernel. Fewer than 16 rows or columns of bf16 read it in place as
//   floats. A float product with one column, or with one row or fewer than 16 columns of a
//   transposed operand that is not constant, becomes a sum of products of elements. One of few rows
//   and columns (128) over a common dimension that is or may be long (8192) in at most four batches
//   becomes one in parts and the sum of these: their number and with it the order of summation
//   follows from the shapes of a call, never from the number of threads.
//   Every `qmatmul` becomes a product over packed codes (ops/packed_qmatmul.h), or, for encodings
//   without integer codes, over the decoded weights.
// Stands before lift_externals, so that packed external data is what bodies take as parameters and
//   the packing runs once, when data is bound.
#pragma once

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr pack_matmul(const ir::GraphPtr& graph);

}  // namespace tenon::passes
