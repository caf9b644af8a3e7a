// How reference evaluation reads and writes elements: in short runs converted to one of a few
// compute types ("lanes"), so that an op needs few instantiations for fourteen dtypes.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tenon/base/literal.h"

namespace tenon::ops {

// The compute types: float, double, int64_t, uint64_t, bool, std::complex<float>.
enum class Lane : uint8_t { kF32, kF64, kI64, kU64, kBool, kC64 };
inline constexpr int kLaneCount = 6;

// f16, bf16 and f32 compute in float, or in double when `wide`; integers in 64 bits.
Lane lane_of(DType dtype, bool wide = false);

// Elements in one run.
inline constexpr int64_t kRun = 256;

// Copies `n` elements from flat position `first` with `stride` (elements; 0 repeats) converting to
// lanes of type T. The dtype's lane must be T's, or T double for any real dtype.
template <class T>
void read_run(const Literal& from, int64_t first, int64_t stride, int64_t n, T* to);
// Stores `n` lanes at flat position `first` on, rounding once or wrapping to the dtype.
template <class T>
void write_run(Literal& to, int64_t first, int64_t n, const T* from);

// Calls f(first, n, positions) for runs of at most kRun elements of a row-major space `dims`:
// `first` is the flat result position, positions[k] the flat position in operand k, whose element
// strides are strides[k]; the step along the run is steps[k].
struct Run {
  int64_t first = 0;
  int64_t count = 0;
  std::vector<int64_t> at;    // per operand
  std::vector<int64_t> step;  // per operand
};
void for_each_run(std::span<const int64_t> dims, std::vector<std::vector<int64_t>> strides,
                  const std::function<void(const Run&)>& f);

// Element strides of an operand of shape `from` read in a space `to`: right-aligned, 0 where
// broadcast.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to);

}  // namespace tenon::ops
