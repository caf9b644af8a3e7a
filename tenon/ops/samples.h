// Samples of ops that take every dtype.
#pragma once

#include <vector>

#include "tenon/ir/op_def.h"

namespace tenon::ops {

// What add(samples, dtype) adds for each dtype.
template <class Samples>
std::vector<ir::Sample> for_all_dtypes(const Samples& add) {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) add(samples, static_cast<DType>(i));
  return samples;
}

}  // namespace tenon::ops
