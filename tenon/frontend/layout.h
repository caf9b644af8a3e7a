// What stands at the boundary of a program before any data exists: dtype, shape, device.
#pragma once

#include <iosfwd>
#include <string>

#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/base/error.h"
#include "tenon/frontend/here.h"
#include "tenon/program/tree.h"

namespace tenon {

// Where tensors live. There is one: the CPU.
class Device {
 public:
  Device() = default;
  // Raises UnsupportedError for a GPU, ValueError for another kind or an index that does not exist.
  explicit Device(std::string_view kind, int index = 0);
  std::string str() const { return "cpu"; }
  bool operator==(const Device&) const = default;
};
Device cpu(int index = 0);

// A tensor argument: dimensions are numbers, names ("batch") or expressions of names. A name is one
// size wherever it stands. The shape of a call is compared with it.
class TensorLayout {
 public:
  // Raises ValueError for a negative size and for an unknown dtype name.
  TensorLayout(DType dtype, Shape shape, Device device = {}, Here at = Here::current());
  TensorLayout(std::string_view dtype, Shape shape, Device device = {}, Here at = Here::current());

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  const Device& device() const { return device_; }
  bool writable() const { return writable_; }
  const std::string& place() const { return place_; }  // where it was declared, "model.cpp:31"

  TensorLayout as_tensor() const;
  TensorLayout as_buffer() const;
  // TensorLayout(f32, ["batch", 2], cpu)
  std::string str() const;
  // By dtype, shape, device and kind: a buffer never equals a tensor. Not by place.
  bool operator==(const TensorLayout& other) const;
  size_t hash() const;

 protected:
  bool writable_ = false;

 private:
  DType dtype_;
  Shape shape_;
  Device device_;
  std::string place_;
};

// A tensor argument that the function may write; the caller's memory shows the writes.
class BufferLayout : public TensorLayout {
 public:
  BufferLayout(DType dtype, Shape shape, Device device = {}, Here at = Here::current())
      : TensorLayout(dtype, std::move(shape), device, at) {
    writable_ = true;
  }
  BufferLayout(std::string_view dtype, Shape shape, Device device = {}, Here at = Here::current())
      : TensorLayout(dtype, std::move(shape), device, at) {
    writable_ = true;
  }
};

std::ostream& operator<<(std::ostream& out, const TensorLayout& layout);

class Tensor;
// `layout` itself. A tensor is a value: TypeError points to its .layout(); anything else is a
// TypeError naming type and value.
inline const TensorLayout& as_layout(const TensorLayout& layout) { return layout; }
TensorLayout as_layout(const Tensor& tensor);
[[noreturn]] void refuse_layout(std::string_view type, const std::string& value);
template <class T>
TensorLayout as_layout(const T& value) {
  if constexpr (program::tree::kIsStatic<T>) {
    refuse_layout(program::type_name<T>(), program::tree::static_view(value).str());
  } else {
    refuse_layout(program::type_name<T>(), "");
  }
}

}  // namespace tenon
