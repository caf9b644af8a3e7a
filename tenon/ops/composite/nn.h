// What neural networks are made of: softmax, norms, activations, attention, rotary positions. f16
// and bf16 operands compute in f32 and results are rounded once to the operand's dtype.
#pragma once

#include "tenon/ops/ops.h"

namespace tenon::ops {

Value softmax(const Value& x, int64_t axis = -1, LocationPtr location = nullptr);
Value log_softmax(const Value& x, int64_t axis = -1, LocationPtr location = nullptr);

// Over one axis, by two passes; weight and bias broadcast against x.
Value layer_norm(const Value& x, const std::optional<Value>& weight,
                 const std::optional<Value>& bias, double eps = 1e-5, int64_t axis = -1,
                 LocationPtr location = nullptr);
// x / sqrt(mean(x²) + eps) * weight over one axis.
Value rms_norm(const Value& x, const std::optional<Value>& weight, double eps = 1e-5,
               int64_t axis = -1, LocationPtr location = nullptr);

// GELU by its tanh approximation; the exact one is the op gelu.
Value gelu_tanh(const Value& x, LocationPtr location = nullptr);
// log(1 + exp(x)) without overflow.
Value softplus(const Value& x, LocationPtr location = nullptr);

struct AttentionOptions {
  // bool: true keeps; float: added to the scores. Broadcasts to [… H, M, N].
  std::optional<Value> mask = std::nullopt;
  std::optional<double> scale = std::nullopt;    // 1 / sqrt(D)
  bool causal = false;                           // query s sees keys t ≤ s + L - M
  std::optional<int64_t> window = std::nullopt;  // and those nearer to s + L - M than so many
  // Only the first L keys count: an integer that broadcasts to the dimensions before H. All N.
  std::optional<Value> length = std::nullopt;
};
// softmax(q·kᵀ·scale) · v for q [… H, M, D], k [… G, N, D], v [… G, N, E]: H query heads share G
// key heads in runs of H/G. Gives [… H, M, E] in q's dtype. Keys that a query does not see take no
// part, whatever they hold, nor do those whose score is -inf; a query that sees none gives 0.
// Scores, weights and sums are f32, or f64 where q, k or v is; integers become floats.
// ShapeError [attention_c1] for ranks below 3 or unlike, [attention_c2] where G does not divide H,
// [attention_c3] and [attention_c4] where D or N differ, [attention_c5] for a mask and
// [attention_c6] for a length of other shape or type; ValueError [attention_c7] for a window below
// 1.
Value attention(const Value& q, const Value& k, const Value& v,
                const AttentionOptions& options = {}, LocationPtr location = nullptr);

struct RopeOptions {
  double base = 10000;
  // Pairs (0, 1), (2, 3) …; else (0, D/2), (1, D/2 + 1) ….
  bool interleaved = false;
  // Rotate the first so many of the last axis only.
  std::optional<int64_t> dims = std::nullopt;
  // Turns per position of each pair, f32[dims / 2]: in place of base^(-2i/dims).
  std::optional<Value> frequencies = std::nullopt;
};
// Rotary position embedding of the last axis of x [… S, D] by integer positions that broadcast
// against x's other axes. ValueError [rope_c1] where the rotated size is not a static even number.
Value rope(const Value& x, const Value& positions, const RopeOptions& options = {},
           LocationPtr location = nullptr);

}  // namespace tenon::ops
