// Block-quantised tensors: u8 rows of blocks as quant/block_format.h lays them out. An encoding is
// named as in a GGUF file ("Q4_K"), or as it was registered.
#pragma once

#include <string>

#include "tenon/ir/op_def.h"
#include "tenon/quant/block_format.h"

namespace tenon::ops {

namespace op {
extern const ir::OpDef quantize, dequantize, qmatmul;
}

// How qmatmul takes its activations.
enum class Activations : uint8_t {
  kExact,  // as they are: the product with the decoded weights, accumulated in f32
  // Rounded, 32 at a time along k, to multiples of the largest magnitude / 127 (nearest, ties to
  // even): the products of the integers are exact, the error is that of the rounding. It concerns
  // the block formats with integer codes; F32, F16, BF16 and registered encodings stay exact.
  kInt8,
};

// x f32[…, n] as u8[…, bytes], by the encoding's quantiser; runs on the host.
// [quantize_c1] an unknown encoding, [quantize_c2] x is not f32 or 0-d, [quantize_c3] the last
// dimension is not static or not whole blocks; ValueError [encode_finite] while it runs, for NaN
// and infinities that the encoding cannot hold.
ir::Value quantize(const std::string& encoding, const ir::Value& x,
                   ir::LocationPtr location = nullptr);
// q u8[…, bytes] as f32[…, n], exactly.
// [dequantize_c1] an unknown encoding, [dequantize_c2] q is not u8 or 0-d, [dequantize_c3] the last
// dimension is not static or not whole blocks.
ir::Value dequantize(const std::string& encoding, const ir::Value& q,
                     ir::LocationPtr location = nullptr);
// x f32[…, k] · dequantize(w u8[n, bytes])ᵀ → f32[…, n]: weights are stored by output column.
// [qmatmul_c1] an unknown encoding, [qmatmul_c2] x is not f32 or 0-d, [qmatmul_c3] w is not a u8
// matrix, [qmatmul_c4] bytes that are not whole blocks, or not those of k elements.
ir::Value qmatmul(const std::string& encoding, const ir::Value& x, const ir::Value& w,
                  Activations activations = Activations::kExact,
                  ir::LocationPtr location = nullptr);

// The format that a node of these ops names.
const quant::BlockFormat& format_of(const ir::Node& node);
// Whether `node` is a dequantize of an encoding that only its registered function decodes.
bool decodes_by_function(const ir::Node& node);
// Rounds 32 activations as kInt8 does: x is about codes · the step that is returned.
float round_block(const float* x, int8_t* codes);

}  // namespace tenon::ops
