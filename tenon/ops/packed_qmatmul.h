// Products with block-quantised weights as kernels see them: what `qmatmul` becomes before lowering
// for formats with integer codes (quant/codes.h). Codes, scales and offsets are laid out in panels
// of 32 output columns and blocks of 32 elements of k, once, when weights are bound; they take as
// much room as the file's blocks, K formats a little more (f32 scales).
#pragma once

#include <string>

#include "tenon/ops/packed_matmul.h"
#include "tenon/quant/codes.h"

namespace tenon::ops {

// Elements of k in a block of panels, and of activations that share a step.
inline constexpr int64_t kQuantBlock = 32;

// qmatmul_codes(w u8[n, bytes]) {encoding} → u32[ceil(n / 32), k / 32, words, 32]: the codes of
// column 32p + j, one word each. Codes of 8 bits: 8 words, byte i of word w is that of element
// 4w + i of the block. Fewer bits: 4 words, whose byte i holds the lowest four bits of elements
// 4w + i (low nibble) and 16 + 4w + i; then one word for codes of 5 bits, two for codes of 6: byte
// i of word v holds the upper bits of elements 4w + i, by rising w, for the 8 (4) values of w from
// 8v (4v) on. Columns past n repeat the last one.
extern const ir::OpDef kQmatmulCodes;
int64_t code_words(const quant::CodeLayout& layout);
// qmatmul_scales(w) {encoding} → [ceil(n / 32), k / 32, rows, 32], f16 where that is exact, else
// f32: the scales of the block's groups, then their offsets where the format has them.
extern const ir::OpDef kQmatmulScales;
// qmatmul_exact(x f32[…, k], codes, scales) {encoding, n} → f32[…, n].
extern const ir::OpDef kQmatmulExact;
// qmatmul_int8(x i8[…, k], steps f32[…, k / 32], sums f32[…, k / group], codes, scales)
// {encoding, n} → f32[…, n] for activations x · step, with the sums of x over the format's groups.
extern const ir::OpDef kQmatmulInt8;

// round_rows(x f32[…, k]) {group} → i8[…, k], f32[…, k / 32], f32[…, k / group]: activations of
// qmatmul_int8, their steps, and the sums of the codes over groups of 32 or 16.
extern const ir::OpDef kRoundRows;

// qmatmul's meaning from these. `encoding` is one with codes.
ir::Value packed_qmatmul(const std::string& encoding, const ir::Value& x, const ir::Value& w,
                         bool int8, ir::LocationPtr location = nullptr);

}  // namespace tenon::ops
