#include "tenon/runtime/array.h"

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"

namespace tenon::runtime {

Array Array::empty(DType dtype, Dims dims) {
  Array array;
  array.count_ = element_count(dims);
  array.dtype_ = dtype;
  array.dims_ = std::move(dims);
  std::shared_ptr<void> memory = allocate(array.bytes());
  array.data_ = memory.get();
  array.owner_ = std::move(memory);
  return array;
}

Array Array::from_literal(const Literal& literal) {
  // The copy of the literal keeps its memory alive.
  auto owner = std::make_shared<const Literal>(literal);
  void* data = const_cast<std::byte*>(owner->data());
  return borrow(literal.dtype(), literal.dims(), data, std::move(owner), false);
}

Array Array::borrow(DType dtype, Dims dims, void* data, std::shared_ptr<const void> owner,
                    bool writable) {
  Array array;
  array.count_ = element_count(dims);
  // Memory of no bytes may come as null; an array without memory is something else.
  if (data == nullptr && array.count_ != 0) {
    throw ValueError(fmt::format("array: no memory for {}", tenon::describe(dtype, dims)));
  }
  array.dtype_ = dtype;
  array.dims_ = std::move(dims);
  if (data == nullptr) {
    std::shared_ptr<void> memory = allocate(0);
    array.data_ = memory.get();
    array.owner_ = std::move(memory);
  } else {
    array.data_ = data;
    array.owner_ = std::move(owner);
  }
  array.writable_ = writable;
  return array;
}

Array Array::copy_of(const Literal& literal) { return from_literal(literal).copy(); }

Array Array::copy() const {
  Array array = empty(dtype_, dims_);
  if (bytes() > 0) std::memcpy(array.data_, data_, bytes());
  return array;
}

void* Array::mutable_data() {
  if (!writable_) {
    throw ValueError(fmt::format("array: the memory of {} is read-only", describe()),
                     {.hint = "copy it first"});
  }
  return data_;
}

Literal Array::to_literal() const {
  check_internal(valid(), "an array without memory has no literal");
  return Literal::borrow(dtype_, dims_, data_, owner_);
}

Array Array::reshaped(Dims dims) const {
  int64_t count = element_count(dims);
  if (count != count_) {
    throw ValueError(fmt::format("reshape: {} has {} elements, {} has {}", describe(), count_,
                                 tenon::describe(dtype_, dims), count),
                     {.label = "reshape_count"});
  }
  Array array = *this;
  array.dims_ = std::move(dims);
  return array;
}

std::string Array::describe() const { return tenon::describe(dtype_, dims_); }

}  // namespace tenon::runtime
