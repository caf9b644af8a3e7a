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
// With `words`, for dtypes of 1 or 2 bytes: i32 [ceil(n / 32), w, 32], where word [p, i, j] holds
// the adjacent elements b[c * i … c * i + c - 1, 32p + j], c = 4 / size, the first in its lowest
// bits, and w is the number of words for k elements, rounded up to a multiple of 16: what
// kir::Op::kPanelDot takes. Elements past row k or column n are 0.
// With `in_place`, the same value is never laid out in memory: the product reads b where it stands,
// which is what pays for operands that are read once or twice.
extern const ir::OpDef kMatmulPack;
// matmul_packed(a[…, m, k], packed, n): what matmul(a, b) gives for packed = matmul_pack(b) and n
// columns. A packed operand without batch dimensions serves every row of `a`, which may then have
// any rank of at least one. `right` is the dtype of the elements of packed words.
// With `parts` = p other than 1 the sums stay apart: result [p, …, m, n] in the
// accumulation type, whose entry i has the i-th depth_of_part(k, p) of the common dimension.
extern const ir::OpDef kMatmulPacked;

ir::Value matmul_pack(const ir::Value& b, bool words = false, ir::LocationPtr location = nullptr,
                      bool in_place = false);
ir::Value matmul_packed(const ir::Value& a, const ir::Value& packed, const Dim& n,
                        DType right = DType::kBF16, ir::LocationPtr location = nullptr,
                        const Dim& parts = 1);
Dim depth_of_part(const Dim& depth, const Dim& parts);

// Panels that hold so many columns.
Dim panels_of(const Dim& columns);
// Elements of a dtype in a word, and words that hold a row or column of `depth` of them.
int64_t elements_in_word(DType dtype);
Dim words_of(const Dim& depth, DType dtype);
// Whether the packed operand of matmul_packed is made of words.
inline bool is_in_words(const ir::Value& packed) { return packed.dtype() == DType::kI32; }

// The type in which products of these operands accumulate: f64 for f64, else f32.
DType accumulation_type(DType a, DType b);

}  // namespace tenon::ops
