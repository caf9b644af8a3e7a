// Conversion of single elements between storage and compute types: the meaning of cast.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>

#include "tenon/base/dtype.h"
#include "tenon/base/error.h"
#include "tenon/base/half.h"

namespace tenon::ops {

// binary64 → bfloat16 with one rounding: to odd in binary32 first.
inline uint16_t bf16_from_double(double value) {
  auto narrow = static_cast<float>(value);
  const double back = narrow;
  if (back != value && std::isfinite(narrow) && !std::isnan(value)) {
    auto bits = std::bit_cast<uint32_t>(narrow);
    if (std::fabs(back) > std::fabs(value)) --bits;
    narrow = std::bit_cast<float>(bits | 1u);
  }
  return bf16_from_float(narrow);
}

// Calls f(S{}) with the storage type of `dtype`: bool, int8_t … uint64_t, Half, BFloat16, float,
// double, std::complex<float>.
template <class F>
void visit_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f(bool{});
    case DType::kI8: return f(int8_t{});
    case DType::kI16: return f(int16_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kU8: return f(uint8_t{});
    case DType::kU16: return f(uint16_t{});
    case DType::kU32: return f(uint32_t{});
    case DType::kU64: return f(uint64_t{});
    case DType::kF16: return f(Half{});
    case DType::kBF16: return f(BFloat16{});
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
    case DType::kC64: return f(std::complex<float>{});
  }
  throw InternalError("internal: unknown dtype");
}

template <class S>
inline constexpr bool kIsHalf = std::same_as<S, Half> || std::same_as<S, BFloat16>;
template <class S>
inline constexpr bool kIsComplex = std::same_as<S, std::complex<float>>;
template <class S>
inline constexpr bool kIsFloat = kIsHalf<S> || std::floating_point<S>;
template <class S>
inline constexpr bool kIsInt = std::integral<S> && !std::same_as<S, bool>;

// Whether runs of storage type S are read and written as lanes of type T.
template <class S, class T>
inline constexpr bool kReadable = std::same_as<T, double>  ? !kIsComplex<S>
                                  : std::same_as<T, float> ? kIsFloat<S>
                                  : std::same_as<T, bool>  ? std::same_as<S, bool>
                                  : kIsComplex<T>          ? kIsComplex<S>
                                                           : kIsInt<S> || std::same_as<S, bool>;

template <class T, class S>
T load_element(S value) {
  if constexpr (kIsHalf<S>) {
    return static_cast<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Float to integer truncates and saturates; NaN gives 0. Integers wrap.
template <class S, class T>
S store_element(T value) {
  if constexpr (std::same_as<S, bool>) {
    return value != T(0);
  } else if constexpr (std::same_as<S, Half>) {
    Half h;
    if constexpr (std::same_as<T, double>) {
      h.bits = f16_from_double(value);
    } else {
      h.bits = f16_from_float(static_cast<float>(value));
    }
    return h;
  } else if constexpr (std::same_as<S, BFloat16>) {
    BFloat16 h;
    if constexpr (std::same_as<T, double>) {
      h.bits = bf16_from_double(value);
    } else {
      h.bits = bf16_from_float(static_cast<float>(value));
    }
    return h;
  } else if constexpr (kIsInt<S> && std::floating_point<T>) {
    if (std::isnan(value)) return 0;
    // The limits as T round up to a power of two at most, so comparisons decide exactly.
    if (value <= static_cast<T>(std::numeric_limits<S>::min())) {
      return std::numeric_limits<S>::min();
    }
    if (value >= static_cast<T>(std::numeric_limits<S>::max())) {
      return std::numeric_limits<S>::max();
    }
    return static_cast<S>(value);
  } else {
    return static_cast<S>(value);
  }
}

}  // namespace tenon::ops
