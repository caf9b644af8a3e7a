// The normal form of attention: what passes see and kernels compute. ops/composite/nn.h has the
// function that users call.
#pragma once

#include <optional>

#include "tenon/ir/op_def.h"

namespace tenon::ops {

namespace op {
extern const ir::OpDef attention;
}

// The parts of an `attention` node.
struct AttentionParts {
  explicit AttentionParts(const ir::Node& node);

  const ir::Value& q;               // [… H, M, D]
  const ir::Value& k;               // [… G, N, D]
  const ir::Value& v;               // [… G, N, E]
  std::optional<ir::Value> mask;    // bool or float, broadcasts to [… H, M, N]
  std::optional<ir::Value> length;  // i64, broadcasts to the dimensions before H
  double scale = 1;
  bool causal = false;
  int64_t window = 0;  // 0: none
  int64_t part = 0;    // 0: all keys together
  // The type that scores, weights and sums are computed in: f32, or f64 where an operand is f64.
  DType compute = DType::kF32;
};

}  // namespace tenon::ops
