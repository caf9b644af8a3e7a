// Q6_K: blocks of 256 in sixteen sub-blocks of 16, each with a signed 8-bit scale under one
// half-float scale of the block; codes are 6 bits in a plane of nibbles and a plane of bit pairs.
#include <algorithm>

#include "tenon/quant/rows.h"

namespace tenon::quant {
namespace {

constexpr int kBlock = 256;
constexpr int kSub = 16;
constexpr int kSubs = 16;
constexpr int kBytes = 210;
constexpr float kTiny = 1e-15f;  // magnitudes below this count as zero

struct Sums {
  float xl = 0.0f;  // sum of x^2 * x * code
  float l2 = 0.0f;  // sum of x^2 * code^2
};

Sums weigh(const float* x, float inverse, int* codes) {
  Sums sums;
  for (int i = 0; i < kSub; ++i) {
    codes[i] = round_clamped(inverse * x[i], -32, 31);
    auto l = static_cast<float>(codes[i]);
    float w = x[i] * x[i];
    sums.xl += w * x[i] * l;
    sums.l2 += w * l * l;
  }
  return sums;
}

// The scale that minimises the error weighted by x^2, over 19 grids around the extreme element.
float fit_sub_block(const float* x, uint8_t* codes) {
  float extreme = signed_extreme(x, kSub);
  if (std::fabs(extreme) < kTiny) {
    std::fill_n(codes, kSub, uint8_t{0});
    return 0.0f;
  }
  int trial[kSub];
  auto take = [&] {
    for (int i = 0; i < kSub; ++i) codes[i] = static_cast<uint8_t>(trial[i] + 32);
  };
  Sums sums = weigh(x, -32.0f / extreme, trial);
  take();
  float scale = sums.l2 != 0.0f ? sums.xl / sums.l2 : 0.0f;
  if (!std::isfinite(scale)) refuse_scale(extreme / 32.0f);
  float best = scale * sums.xl;
  for (int s = -9; s <= 9; ++s) {
    if (s == 0) continue;
    sums = weigh(x, -(32.0f + 0.1f * static_cast<float>(s)) / extreme, trial);
    if (sums.l2 > 0.0f && sums.xl * sums.xl > best * sums.l2) {
      take();
      scale = sums.xl / sums.l2;
      best = scale * sums.xl;
    }
  }
  return scale;
}

void store_codes(const uint8_t* codes, std::byte* ql, std::byte* qh) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* q = codes + 128 * half;
    for (int l = 0; l < 32; ++l) {
      ql[64 * half + l] = static_cast<std::byte>((q[l] & 15) | (q[l + 64] & 15) << 4);
      ql[64 * half + 32 + l] = static_cast<std::byte>((q[l + 32] & 15) | (q[l + 96] & 15) << 4);
      qh[32 * half + l] = static_cast<std::byte>(q[l] >> 4 | (q[l + 32] >> 4) << 2 |
                                                 (q[l + 64] >> 4) << 4 | (q[l + 96] >> 4) << 6);
    }
  }
}

}  // namespace

void decode_q6_k(const std::byte* in, float* out, int64_t blocks) {
  for (; blocks > 0; --blocks, in += kBytes) {
    const float d = load_f16(in + 208);
    const auto* scales = reinterpret_cast<const int8_t*>(in + 192);
    for (int group = 0; group < 8; ++group, out += 32) {  // 128-element half and quarter of it
      const int half = group / 4;
      const int quarter = group % 4;
      const auto* ql = reinterpret_cast<const uint8_t*>(in) + 64 * half + 32 * (quarter & 1);
      const auto* qh = reinterpret_cast<const uint8_t*>(in + 128) + 32 * half;
      const int shift = quarter < 2 ? 0 : 4;
      for (int part = 0; part < 2; ++part) {
        const float scale = d * static_cast<float>(scales[8 * half + 2 * quarter + part]);
        for (int l = 16 * part; l < 16 * (part + 1); ++l) {
          int q = ((ql[l] >> shift) & 15) | ((qh[l] >> (2 * quarter)) & 3) << 4;
          out[l] = scale * static_cast<float>(q - 32);
        }
      }
    }
  }
}

void encode_q6_k(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  float scales[kSubs];
  for (; blocks > 0; --blocks, in += kBlock, out += kBytes) {
    for (int j = 0; j < kSubs; ++j) scales[j] = fit_sub_block(in + kSub * j, codes + kSub * j);
    float extreme = signed_extreme(scales, kSubs);
    if (std::fabs(extreme) < kTiny) {
      std::memset(out, 0, kBytes);
      continue;
    }
    float inverse = -128.0f / extreme;
    float d = store_f16(out + 208, 1.0f / inverse);
    for (int j = 0; j < kSubs; ++j) {
      int code = round_clamped(inverse * scales[j], -128, 127);
      out[192 + j] = static_cast<std::byte>(code);
      float scale = d * static_cast<float>(code);
      if (scale == 0.0f) continue;
      for (int i = kSub * j; i < kSub * (j + 1); ++i) {
        codes[i] = static_cast<uint8_t>(round_clamped(in[i] / scale, -32, 31) + 32);
      }
    }
    store_codes(codes, out, out + 128);
  }
}

}  // namespace tenon::quant
