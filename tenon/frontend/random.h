// Random numbers. A function of a key, a u32[2] tensor, gives the same numbers for the same key on
// every path; use a key once and split it for more. Without a key an eager draw takes the next one
// of this process; while tracing that is a TraceError, since every call would draw the same.
#pragma once

#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"

namespace tenon::random {

Tensor key(uint64_t seed, Here at = Here::current());
// `count` independent keys, u32[count, 2].
Tensor split(const Operand& key, const Dim& count = 2);
Tensor fold_in(const Operand& key, const Operand& data);
// Restarts the draws without a key; they begin from seed 0.
void seed(uint64_t value);

Tensor uniform(const Operand& key, const Shape& shape, DType dtype = f32, double lo = 0,
               double hi = 1);
Tensor normal(const Operand& key, const Shape& shape, DType dtype = f32);
Tensor bernoulli(const Operand& key, const Operand& p, const Shape& shape);
// In lo ≤ x < hi.
Tensor randint(const Operand& key, const Shape& shape, int64_t lo, int64_t hi, DType dtype = i64);
// An index along `axis` with probability softmax(logits).
Tensor categorical(const Operand& key, const Operand& logits, int64_t axis = -1);

Tensor uniform(const Shape& shape, DType dtype = f32, double lo = 0, double hi = 1,
               Here at = Here::current());
Tensor normal(const Shape& shape, DType dtype = f32, Here at = Here::current());

}  // namespace tenon::random
