#include "tenon/ops/lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tenon/base/half.h"
#include "tenon/ops/convert.h"

namespace tenon::ops {

Lane lane_of(DType dtype, bool wide) {
  if (dtype == DType::kBool) return Lane::kBool;
  if (dtype == DType::kC64) return Lane::kC64;
  if (dtype == DType::kF64) return Lane::kF64;
  if (is_float(dtype)) return wide ? Lane::kF64 : Lane::kF32;
  return is_signed(dtype) ? Lane::kI64 : Lane::kU64;
}

namespace {

template <class S, class T>
void read_as(const Literal& from, int64_t first, int64_t stride, int64_t n, T* to) {
  const S* p = from.as<S>() + first;
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = load_element<T>(p[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = load_element<T>(p[i * stride]);
  }
}

template <class S, class T>
void write_as(Literal& to, int64_t first, int64_t n, const T* from) {
  S* p = to.as_mutable<S>() + first;
  for (int64_t i = 0; i < n; ++i) p[i] = store_element<S>(from[i]);
}

}  // namespace

template <class T>
void read_run(const Literal& from, int64_t first, int64_t stride, int64_t n, T* to) {
  visit_storage(from.dtype(), [&]<class S>(S) {
    if constexpr (kReadable<S, T>) {
      read_as<S>(from, first, stride, n, to);
    } else {
      throw InternalError("internal: a lane type does not fit the dtype");
    }
  });
}

template <class T>
void write_run(Literal& to, int64_t first, int64_t n, const T* from) {
  visit_storage(to.dtype(), [&]<class S>(S) {
    if constexpr (kReadable<S, T>) {
      write_as<S>(to, first, n, from);
    } else {
      throw InternalError("internal: a lane type does not fit the dtype");
    }
  });
}

#define TENON_LANE(T) \
  template void read_run<T>(const Literal&, int64_t, int64_t, int64_t, T*); \
  template void write_run<T>(Literal&, int64_t, int64_t, const T*);
TENON_LANE(float)
TENON_LANE(double)
TENON_LANE(int64_t)
TENON_LANE(uint64_t)
TENON_LANE(bool)
TENON_LANE(std::complex<float>)
#undef TENON_LANE

std::vector<int64_t> broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t k = 0; k < from.size(); ++k) {
    const size_t i = from.size() - 1 - k;
    if (from[i] != 1) strides[to.size() - 1 - k] = stride;
    stride *= from[i];
  }
  return strides;
}

namespace {

// Joins neighbouring dimensions that every operand walks as one.
void collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides) {
  size_t kept = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const bool joins = kept > 0 && std::all_of(strides.begin(), strides.end(), [&](const auto& s) {
                         return s[kept - 1] == s[i] * dims[i];
                       });
    if (joins) {
      dims[kept - 1] *= dims[i];
      for (auto& s : strides) s[kept - 1] = s[i];
      continue;
    }
    dims[kept] = dims[i];
    for (auto& s : strides) s[kept] = s[i];
    ++kept;
  }
  dims.resize(kept);
  for (auto& s : strides) s.resize(kept);
}

}  // namespace

void for_each_run(std::span<const int64_t> space, std::vector<std::vector<int64_t>> strides,
                  const std::function<void(const Run&)>& f) {
  std::vector<int64_t> dims(space.begin(), space.end());
  if (element_count(dims) == 0) return;
  collapse(dims, strides);
  const size_t operands = strides.size();
  const int64_t inner = dims.empty() ? 1 : dims.back();
  Run run{.at = std::vector<int64_t>(operands, 0), .step = std::vector<int64_t>(operands, 0)};
  if (!dims.empty()) {
    for (size_t k = 0; k < operands; ++k) run.step[k] = strides[k].back();
  }
  std::vector<int64_t> base(operands, 0);
  std::vector<int64_t> index(dims.empty() ? 0 : dims.size() - 1, 0);
  while (true) {
    for (int64_t i = 0; i < inner; i += kRun) {
      run.count = std::min(kRun, inner - i);
      for (size_t k = 0; k < operands; ++k) run.at[k] = base[k] + i * run.step[k];
      f(run);
      run.first += run.count;
    }
    size_t d = index.size();
    while (d > 0) {
      --d;
      for (size_t k = 0; k < operands; ++k) base[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < operands; ++k) base[k] -= strides[k][d] * dims[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (index.empty()) return;
  }
}

}  // namespace tenon::ops
