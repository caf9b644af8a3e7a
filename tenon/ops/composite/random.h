// Random numbers without state: every function takes a key, a u32[2] tensor, and gives the same
// numbers for the same key on every path. Use a key once; split() makes more. Element i of a draw
// is Threefry of the key and counter i, so a draw does not depend on how it is computed.
#pragma once

#include "tenon/ops/ops.h"

namespace tenon::ops::random {

Value key(uint64_t seed, LocationPtr location = nullptr);
// `count` independent keys, u32[count, 2]. All functions raise TypeError [random_key] unless the
// key is u32[2].
Value split(const Value& key, const Dim& count = 2, LocationPtr location = nullptr);
// The key for a number (0-d integer), such as a step.
Value fold_in(const Value& key, const Value& data, LocationPtr location = nullptr);

// 64 random bits an element, u64.
Value bits(const Value& key, const Shape& shape, LocationPtr location = nullptr);
// In lo ≤ x < hi (hi itself can come out where lo + u·(hi-lo) rounds up): every multiple of 2^-24
// for f32, 2^-53 for f64, 2^-11 for f16, 2^-8 for bf16, equally likely.
Value uniform(const Value& key, const Shape& shape, DType dtype = DType::kF32, double lo = 0,
              double hi = 1, LocationPtr location = nullptr);
// Mean 0, variance 1, by the inverse of the distribution function; |x| < 5.6 in f32.
Value normal(const Value& key, const Shape& shape, DType dtype = DType::kF32,
             LocationPtr location = nullptr);
// True with probability p (a float tensor that broadcasts to the shape).
Value bernoulli(const Value& key, const Value& p, const Shape& shape,
                LocationPtr location = nullptr);
// In lo ≤ x < hi, by the remainder of 64 bits: biased by less than (hi-lo) / 2^64. ValueError
// [randint_c1] unless lo < hi.
Value randint(const Value& key, const Shape& shape, int64_t lo, int64_t hi,
              DType dtype = DType::kI64, LocationPtr location = nullptr);
// An index along `axis` with probability softmax(logits).
Value categorical(const Value& key, const Value& logits, int64_t axis = -1,
                  LocationPtr location = nullptr);

}  // namespace tenon::ops::random
