// Arrays: memory with a dtype and a shape, dense and row-major. Copying an Array shares memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/base/dims.h"
#include "tenon/base/dtype.h"
#include "tenon/base/literal.h"

struct DLManagedTensor;

namespace tenon::runtime {

class TENON_API Array {
 public:
  Array() = default;  // no memory; valid() is false
  // Uninitialised memory from the allocator (64-byte aligned, reused, huge pages when large).
  static Array empty(DType dtype, Dims dims);
  // Shares a literal's memory. Read-only.
  static Array from_literal(const Literal& literal);
  // Memory owned elsewhere; `owner` is kept alive. `writable` false: a program may not update it.
  static Array borrow(DType dtype, Dims dims, void* data, std::shared_ptr<const void> owner,
                      bool writable);
  // A copy of `values`, whose elements are stored as `dtype` is (std::vector<uint8_t> for bool).
  // Raises ValueError when count or element size differ.
  template <class T>
  static Array copy_of(DType dtype, Dims dims, const std::vector<T>& values);
  static Array copy_of(const Literal& literal);
  Array copy() const;  // the same contents in memory of its own

  bool valid() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t count() const { return count_; }
  size_t bytes() const { return static_cast<size_t>(count_) * size_of(dtype_); }
  const void* data() const { return data_; }
  // Raises ValueError for read-only memory.
  void* mutable_data();
  bool writable() const { return writable_; }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }

  Literal to_literal() const;       // shares memory
  Array reshaped(Dims dims) const;  // shares memory; ValueError on another count
  std::string describe() const;     // "f32[4, 2]"

  // DLPack: dense row-major CPU tensors without copying; anything else raises ValueError naming
  // what is not supported and the way out.
  static Array from_dlpack(DLManagedTensor* tensor);  // takes ownership, also on error
  DLManagedTensor* to_dlpack() const;                 // the caller calls its deleter

 private:
  DType dtype_ = DType::kF32;
  Dims dims_;
  int64_t count_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  bool writable_ = true;
};

template <class T>
Array Array::copy_of(DType dtype, Dims dims, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
  Array array = empty(dtype, std::move(dims));
  if (values.size() * sizeof(T) != array.bytes()) {
    throw ValueError(fmt::format("copy_of: {} takes {} bytes, got {}", array.describe(),
                                 array.bytes(), values.size() * sizeof(T)),
                     {.label = "copy_of_count"});
  }
  if (!values.empty()) std::memcpy(array.data_, values.data(), array.bytes());
  return array;
}

}  // namespace tenon::runtime
