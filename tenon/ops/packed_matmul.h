// Matrix products over packed right operands: what `matmul` becomes before lowering. Packing costs
// one pass over the operand; for constants and external data it happens once, when data is bound.
#pragma once

#include "tenon/ir/graph.h"
#include "tenon/ir/op_def.h"

namespace tenon::ops {

// Columns of a panel: a multiple of two vectors of every target.
inline constexpr int64_t kPanelColumns = 32;

// matmul_pack(b[…, k, n]) → [ceil(n / 32), k, 32] (after the batch dimensions): element
// [p, i, j] is b[i, 32p + j], and 0 past column n.
extern const ir::OpDef kMatmulPack;
// matmul_packed(a[…, m, k], packed, n): what matmul(a, b) gives for packed = matmul_pack(b) and n
// columns. A packed operand without batch dimensions serves every row of `a`, which may then have
// any rank of at least one.
extern const ir::OpDef kMatmulPacked;

ir::Value matmul_pack(const ir::Value& b, ir::LocationPtr location = nullptr);
ir::Value matmul_packed(const ir::Value& a, const ir::Value& packed, const Dim& n,
                        ir::LocationPtr location = nullptr);

// The type in which products of these operands accumulate: f64 for f64, else f32.
DType accumulation_type(DType a, DType b);

}  // namespace tenon::ops
