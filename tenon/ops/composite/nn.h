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
  std::optional<Value> mask =
      std::nullopt;  // bool: true keeps; else added to the scores. [(…, H,) S, T]
  std::optional<double> scale = std::nullopt;  // 1 / sqrt(D)
  bool causal = false;                         // query s sees keys t ≤ s + T - S
};
// softmax(q·kᵀ·scale) · v for q [… H, S, D], k [… G, T, D], v [… G, T, E]: H query heads share G
// key heads in runs of H/G. Gives [… H, S, E] in q's dtype. A row whose keys are all masked is NaN.
// ShapeError [attention_c1] for ranks below 3 or unlike, [attention_c2] where G does not divide H.
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
