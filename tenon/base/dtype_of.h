// The dtype of a C++ element type.
#pragma once

#include <complex>
#include <type_traits>

#include "tenon/base/dtype.h"
#include "tenon/base/half.h"

namespace tenon {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else if constexpr (std::is_same_v<T, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<T, Half>) {
    return DType::kF16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DType::kBF16;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return DType::kC64;
  } else {
    static_assert(std::is_integral_v<T>, "no dtype holds this C++ type");
    constexpr DType kSigned[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
    constexpr DType kUnsigned[] = {DType::kU8, DType::kU16, DType::kU32, DType::kU64};
    constexpr size_t i = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[i] : kUnsigned[i];
  }
}

}  // namespace tenon
