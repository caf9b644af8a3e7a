// Block-quantised tensors: u8 rows of blocks in an encoding, named as in GGUF files ("Q4_K"); what
// the encodings are, see quant/block_format.h.
#pragma once

#include <string>

#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"
#include "tenon/ops/quantized.h"

namespace tenon {

using ops::Activations;

// A user's encoding: blocks of `elements` floats in `bytes` bytes and the two functions between
// them, which may be called from several threads.
struct EncodingSpec {
  std::string name;
  int64_t elements = 0;
  int64_t bytes = 0;
  void (*decode)(const std::byte* in, float* out, int64_t blocks) = nullptr;
  void (*encode)(const float* in, std::byte* out, int64_t blocks) = nullptr;
};
// Makes `spec` known to this process under its name. Raises ValueError [encoding_register] for a
// name that is empty or taken, sizes below 1 or a missing function.
void register_encoding(const EncodingSpec& spec);

// x f32[…, n] as u8[…, bytes]; n is whole blocks. The encoding's reference quantiser, on the host.
Tensor quantize(const std::string& encoding, const Operand& x);
// q u8[…, bytes] as f32[…, n], exactly. dequantize(e, take(q, rows)) decodes those rows alone.
Tensor dequantize(const std::string& encoding, const Operand& q);
// x f32[…, k] · dequantize(w)ᵀ for w u8[n, bytes]: weights by output column, any number of rows.
// kInt8 rounds activations to 8 bits in blocks of 32 and multiplies integers; see ops/quantized.h.
Tensor qmatmul(const std::string& encoding, const Operand& x, const Operand& w,
               Activations activations = Activations::kExact);

}  // namespace tenon
