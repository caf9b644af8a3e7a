// Q4_K and Q5_K: blocks of 256 in eight sub-blocks of 32, each with a 6-bit scale and a 6-bit
// minimum under two half-float scales of the block; Q5_K adds a plane of fifth bits.
#include <algorithm>
#include <array>

#include "tenon/quant/rows.h"

namespace tenon::quant {
namespace {

constexpr int kBlock = 256;
constexpr int kSub = 32;
constexpr int kSubs = 8;

struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

// The 6-bit pairs in twelve bytes: four plain scales, four plain minimums, whose top two bits hold
// the upper bits of the other four pairs.
ScaleMin unpack_scale_min(const uint8_t* b, int j) {
  if (j < 4) return {static_cast<uint8_t>(b[j] & 63), static_cast<uint8_t>(b[j + 4] & 63)};
  return {static_cast<uint8_t>((b[j + 4] & 15) | ((b[j - 4] >> 6) << 4)),
          static_cast<uint8_t>((b[j + 4] >> 4) | ((b[j] >> 6) << 4))};
}

void pack_scale_min(const std::array<ScaleMin, kSubs>& pairs, std::byte* out) {
  uint8_t b[12] = {};
  for (int j = 0; j < 4; ++j) {
    b[j] = static_cast<uint8_t>(pairs[j].scale | (pairs[j + 4].scale >> 4) << 6);
    b[j + 4] = static_cast<uint8_t>(pairs[j].min | (pairs[j + 4].min >> 4) << 6);
    b[j + 8] = static_cast<uint8_t>((pairs[j + 4].scale & 15) | (pairs[j + 4].min & 15) << 4);
  }
  std::memcpy(out, b, sizeof b);
}

struct Search {
  int highest;  // the largest code
  float first;  // the first step's change of the number of levels
  int steps;
};

constexpr Search kSearch4 = {15, -1.0f, 20};
constexpr Search kSearch5 = {31, -0.5f, 15};

struct Fit {
  float scale;
  float offset;  // subtracted; not negative
};

float weighted_error(const float* x, const float* w, const uint8_t* codes, float scale, float min) {
  float sum = 0.0f;
  for (int i = 0; i < kSub; ++i) {
    float difference = scale * static_cast<float>(codes[i]) + min - x[i];
    sum += w[i] * (difference * difference);
  }
  return sum;
}

void codes_at(const float* x, float inverse, float min, int highest, uint8_t* codes) {
  for (int i = 0; i < kSub; ++i) {
    codes[i] = static_cast<uint8_t>(round_clamped(inverse * (x[i] - min), 0, highest));
  }
}

// Weighted least squares of scale and minimum for given codes; false when they are all equal.
bool solve(const float* x, const float* w, const uint8_t* codes, float sum_w, float sum_x,
           float& scale, float& min) {
  float sum_l = 0.0f, sum_l2 = 0.0f, sum_xl = 0.0f;
  for (int i = 0; i < kSub; ++i) {
    auto l = static_cast<float>(codes[i]);
    float wl = w[i] * l;
    sum_l += wl;
    sum_l2 += wl * l;
    sum_xl += wl * x[i];
  }
  float determinant = sum_w * sum_l2 - sum_l * sum_l;
  if (!(determinant > 0.0f)) return false;
  scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
  min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
  if (min > 0.0f) {
    min = 0.0f;
    scale = sum_xl / sum_l2;
  }
  return true;
}

Fit fit_sub_block(const float* x, const Search& search, uint8_t* codes) {
  float w[kSub];
  float sum_squares = 0.0f;
  for (int i = 0; i < kSub; ++i) sum_squares += x[i] * x[i];
  float rms = std::sqrt(sum_squares / kSub);
  for (int i = 0; i < kSub; ++i) w[i] = rms + std::fabs(x[i]);

  float sum_w = 0.0f, sum_x = 0.0f;
  for (int i = 0; i < kSub; ++i) {
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  auto [low, high] = std::minmax_element(x, x + kSub);
  float min = std::min(*low, 0.0f);
  const float max = *high;
  if (max == min) {
    std::fill_n(codes, kSub, uint8_t{0});
    return {0.0f, -min};
  }
  const auto levels = static_cast<float>(search.highest);
  float inverse = levels / (max - min);
  float scale = 1.0f / inverse;
  codes_at(x, inverse, min, search.highest, codes);
  float best = weighted_error(x, w, codes, scale, min);
  for (int s = 0; s <= search.steps; ++s) {
    uint8_t trial[kSub];
    // An accepted minimum moves the grid of all later steps.
    inverse = (search.first + 0.1f * static_cast<float>(s) + levels) / (max - min);
    codes_at(x, inverse, min, search.highest, trial);
    float new_scale, new_min;
    if (!solve(x, w, trial, sum_w, sum_x, new_scale, new_min)) continue;
    float error = weighted_error(x, w, trial, new_scale, new_min);
    if (error < best) {
      std::copy_n(trial, kSub, codes);
      best = error;
      scale = new_scale;
      min = new_min;
    }
  }
  return {scale, -min};
}

// Fits all sub-blocks, stores the 16 bytes of scales and gives the final codes.
void encode_scales_and_codes(const float* x, const Search& search, std::byte* out, uint8_t* codes) {
  std::array<Fit, kSubs> fits;
  float largest_scale = 0.0f, largest_offset = 0.0f;
  for (int j = 0; j < kSubs; ++j) {
    fits[j] = fit_sub_block(x + kSub * j, search, codes + kSub * j);
    largest_scale = std::max(largest_scale, fits[j].scale);
    largest_offset = std::max(largest_offset, fits[j].offset);
  }
  float inverse_scale = largest_scale > 0.0f ? 63.0f / largest_scale : 0.0f;
  float inverse_offset = largest_offset > 0.0f ? 63.0f / largest_offset : 0.0f;
  std::array<ScaleMin, kSubs> pairs;
  for (int j = 0; j < kSubs; ++j) {
    pairs[j] = {static_cast<uint8_t>(round_clamped(inverse_scale * fits[j].scale, 0, 63)),
                static_cast<uint8_t>(round_clamped(inverse_offset * fits[j].offset, 0, 63))};
  }
  float d = store_f16(out, largest_scale / 63.0f);
  float dmin = store_f16(out + 2, largest_offset / 63.0f);
  pack_scale_min(pairs, out + 4);
  for (int j = 0; j < kSubs; ++j) {
    float scale = d * pairs[j].scale;
    if (scale == 0.0f) continue;
    float offset = dmin * pairs[j].min;
    for (int i = kSub * j; i < kSub * (j + 1); ++i) {
      codes[i] = static_cast<uint8_t>(round_clamped((x[i] + offset) / scale, 0, search.highest));
    }
  }
}

void store_nibble_planes(const uint8_t* codes, std::byte* qs) {
  for (int chunk = 0; chunk < kSubs / 2; ++chunk) {
    for (int l = 0; l < kSub; ++l) {
      const uint8_t* low = codes + 64 * chunk + l;
      qs[kSub * chunk + l] = static_cast<std::byte>((low[0] & 15) | (low[kSub] & 15) << 4);
    }
  }
}

void decode_sub(const uint8_t* codes, float scale, float offset, float* out) {
  for (int l = 0; l < kSub; ++l) out[l] = scale * static_cast<float>(codes[l]) - offset;
}

}  // namespace

void decode_q4_k(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kSub];
  for (; blocks > 0; --blocks, in += 144, out += kBlock) {
    float d = load_f16(in);
    float dmin = load_f16(in + 2);
    const auto* scales = reinterpret_cast<const uint8_t*>(in + 4);
    for (int j = 0; j < kSubs; ++j) {
      auto [scale, min] = unpack_scale_min(scales, j);
      const auto* qs = reinterpret_cast<const uint8_t*>(in + 16) + kSub * (j / 2);
      const int shift = j % 2 * 4;
      for (int l = 0; l < kSub; ++l) codes[l] = (qs[l] >> shift) & 15;
      decode_sub(codes, d * scale, dmin * min, out + kSub * j);
    }
  }
}

void decode_q5_k(const std::byte* in, float* out, int64_t blocks) {
  uint8_t codes[kSub];
  for (; blocks > 0; --blocks, in += 176, out += kBlock) {
    float d = load_f16(in);
    float dmin = load_f16(in + 2);
    const auto* scales = reinterpret_cast<const uint8_t*>(in + 4);
    const auto* qh = reinterpret_cast<const uint8_t*>(in + 16);
    for (int j = 0; j < kSubs; ++j) {
      auto [scale, min] = unpack_scale_min(scales, j);
      const auto* qs = reinterpret_cast<const uint8_t*>(in + 48) + kSub * (j / 2);
      const int shift = j % 2 * 4;
      for (int l = 0; l < kSub; ++l) {
        codes[l] = static_cast<uint8_t>(((qs[l] >> shift) & 15) | ((qh[l] >> j) & 1) << 4);
      }
      decode_sub(codes, d * scale, dmin * min, out + kSub * j);
    }
  }
}

void encode_q4_k(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 144) {
    encode_scales_and_codes(in, kSearch4, out, codes);
    store_nibble_planes(codes, out + 16);
  }
}

void encode_q5_k(const float* in, std::byte* out, int64_t blocks) {
  uint8_t codes[kBlock];
  for (; blocks > 0; --blocks, in += kBlock, out += 176) {
    encode_scales_and_codes(in, kSearch5, out, codes);
    for (int l = 0; l < kSub; ++l) {
      int bits = 0;
      for (int j = 0; j < kSubs; ++j) bits |= (codes[kSub * j + l] >> 4) << j;
      out[16 + l] = static_cast<std::byte>(bits);
    }
    store_nibble_planes(codes, out + 48);
  }
}

}  // namespace tenon::quant
