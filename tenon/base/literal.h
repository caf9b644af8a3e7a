// A tensor value in host memory: dense, row-major, immutable once shared. Constants of graphs,
// results of the interpreter and the contents of portable graphs are literals.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/base/dtype.h"
#include "tenon/base/error.h"

namespace tenon {

class Literal {
 public:
  Literal() : Literal(DType::kF32, {0}) {}
  // Zero-filled, 64-byte aligned; data() is never null, also with no elements. Raises ValueError
  // for a negative dimension, a size over 2^62 bytes or one that the machine cannot give.
  Literal(DType dtype, std::vector<int64_t> dims);
  // Shares memory owned elsewhere (an array, a mapped file); `owner` is kept alive.
  static Literal borrow(DType dtype, std::vector<int64_t> dims, const void* data,
                        std::shared_ptr<const void> owner);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t count() const { return count_; }  // elements; 1 for 0-d
  size_t bytes() const { return static_cast<size_t>(count_) * size_of(dtype_); }
  const std::byte* data() const { return data_; }
  // Only for the code that fills a literal before it is shared.
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <class T>
  T* as_mutable() {
    return reinterpret_cast<T*>(mutable_data());
  }
  std::span<const std::byte> span() const { return {data_, bytes()}; }

  // A 0-d literal of `dtype` holding `value`. Raises ValueError when an integer type cannot hold it
  // exactly (bool: 0 and 1), an integer is not exact in a float type, or a finite double would
  // become infinite; a double is otherwise rounded to a float type.
  static Literal scalar(DType dtype, double value);
  static Literal scalar_int(DType dtype, int64_t value);

  // Element `i` (flat) converted; for printing, folding and tests. A complex element reads as its
  // real part and is written with imaginary part 0. Raise IndexError outside [0, count).
  double get_double(int64_t i) const;
  int64_t get_int(int64_t i) const;  // a float as set_double(i64); a u64 over 2^63 wraps
  // To a float type: rounds once to nearest even. To an integer: toward zero, saturating, NaN gives
  // 0. To bool: whether it is not 0.
  void set_double(int64_t i, double value);
  // To an integer: wraps. To a float type: rounds once to nearest even.
  void set_int(int64_t i, int64_t value);

  // Same dtype, dims and bytes.
  bool same(const Literal& other) const;

 private:
  DType dtype_;
  std::vector<int64_t> dims_;
  int64_t count_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Product of dims; raises ValueError on a negative dimension or overflow.
TENON_API int64_t element_count(std::span<const int64_t> dims);
// Row-major strides in elements.
std::vector<int64_t> contiguous_strides(std::span<const int64_t> dims);
// "f32[4, 2]".
TENON_API std::string describe(DType dtype, std::span<const int64_t> dims);

}  // namespace tenon
