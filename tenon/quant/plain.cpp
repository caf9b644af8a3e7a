// F32, F16 and BF16: blocks of one element.
#include "tenon/quant/rows.h"

namespace tenon::quant {

void decode_f32(const std::byte* in, float* out, int64_t blocks) {
  if (blocks > 0) std::memcpy(out, in, static_cast<size_t>(blocks) * 4);
}

void encode_f32(const float* in, std::byte* out, int64_t blocks) {
  if (blocks > 0) std::memcpy(out, in, static_cast<size_t>(blocks) * 4);
}

void decode_f16(const std::byte* in, float* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) out[i] = load_f16(in + 2 * i);
}

void encode_f16(const float* in, std::byte* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    uint16_t bits = f16_from_float(in[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

void decode_bf16(const std::byte* in, float* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    out[i] = bf16_to_float(bits);
  }
}

void encode_bf16(const float* in, std::byte* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    uint16_t bits = bf16_from_float(in[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

}  // namespace tenon::quant
