// Statistics and what neural networks are made of, by the rules of ops/composite/. Each is made of
// the primitives, so that fusion sees through it.
#pragma once

#include <optional>

#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"

namespace tenon {

// NaN for no elements; the variance divides by the count less `ddof`.
Tensor mean(const Operand& x, const Axes& axes = {}, bool keepdims = false);
Tensor var(const Operand& x, const Axes& axes = {}, bool keepdims = false, int64_t ddof = 0);
Tensor stddev(const Operand& x, const Axes& axes = {}, bool keepdims = false, int64_t ddof = 0);
Tensor logsumexp(const Operand& x, const Axes& axes = {}, bool keepdims = false);

Tensor softmax(const Operand& x, int64_t axis = -1);
Tensor log_softmax(const Operand& x, int64_t axis = -1);
// Over one axis; weight and bias broadcast against x.
Tensor layer_norm(const Operand& x, const std::optional<Tensor>& weight = std::nullopt,
                  const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5,
                  int64_t axis = -1);
Tensor rms_norm(const Operand& x, const std::optional<Tensor>& weight = std::nullopt,
                double eps = 1e-5, int64_t axis = -1);
Tensor gelu_tanh(const Operand& x);
Tensor softplus(const Operand& x);

struct AttentionOptions {
  std::optional<Tensor> mask = std::nullopt;     // bool: true keeps; else added to the scores
  std::optional<double> scale = std::nullopt;    // 1 / sqrt(D)
  bool causal = false;                           // query s sees keys t ≤ s + L - M
  std::optional<int64_t> window = std::nullopt;  // and those nearer to s + L - M than so many
  std::optional<Tensor> length = std::nullopt;   // the first L of the N keys count
};
// softmax(q·kᵀ·scale) · v for q [… H, M, D], k [… G, N, D], v [… G, N, E]; G divides H. Keys that
// a query does not see take no part, whatever they hold; a query that sees none gives 0.
Tensor attention(const Operand& q, const Operand& k, const Operand& v,
                 const AttentionOptions& options = {});

struct RopeOptions {
  double base = 10000;
  bool interleaved = false;                    // pairs (0, 1), (2, 3) …; else halves
  std::optional<int64_t> dims = std::nullopt;  // rotate the first so many of the last axis
  std::optional<Tensor> frequencies = std::nullopt;
};
// Rotary position embedding of the last axis by integer positions.
Tensor rope(const Operand& x, const Operand& positions, const RopeOptions& options = {});

// The lower (upper) triangle of the last two axes.
Tensor tril(const Operand& x, int64_t k = 0);
Tensor triu(const Operand& x, int64_t k = 0);

}  // namespace tenon
