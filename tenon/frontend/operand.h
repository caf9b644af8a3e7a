// What an op takes: a tensor, a C++ number, or a size of a tensor. Numbers are weak: they take the
// dtype of the tensors beside them.
//
//   integer with any dtype: that dtype (bool gives i64); it must be exact there: 300 with u8 and
//     2^25 + 1 with f32 are ValueErrors
//   float with a float dtype or c64: that dtype, rounded once; a finite one that would become
//     infinite is a ValueError; with an integer or bool tensor the result is f32 (array API)
//   bool: that dtype, 0 or 1
#pragma once

#include <concepts>
#include <cstdint>

#include "tenon/frontend/tensor.h"

namespace tenon {

class Operand {
 public:
  enum class Kind : uint8_t { kTensor, kBool, kInt, kUInt, kFloat, kSize };

  Operand(const Tensor& tensor, Here at = Here::current())  // NOLINT: implicit by design
      : kind(Kind::kTensor), tensor(tensor), at(at) {}
  Operand(const TensorView& view, Here at = Here::current());  // NOLINT
  Operand(const Extent& size, Here at = Here::current())       // NOLINT
      : kind(Kind::kSize), size(size.dim()), at(at) {}
  template <class T>
  requires std::is_arithmetic_v<T> Operand(T value, Here at = Here::current()) : at(at) {  // NOLINT
    if constexpr (std::is_same_v<T, bool>) {
      kind = Kind::kBool;
      integer = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      kind = Kind::kFloat;
      real = static_cast<double>(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      kind = static_cast<uint64_t>(value) >> 63 != 0 ? Kind::kUInt : Kind::kInt;
      integer = static_cast<int64_t>(value);
    } else {
      kind = Kind::kInt;
      integer = static_cast<int64_t>(value);
    }
  }

  Kind kind = Kind::kInt;
  Tensor tensor;
  int64_t integer = 0;  // kUInt: the bits of a uint64_t above INT64_MAX
  double real = 0;
  Dim size;
  Here at;
};

}  // namespace tenon
