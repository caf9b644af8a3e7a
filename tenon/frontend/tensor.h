// Tensors as users hold them. A Tensor is a handle with value semantics: outside a trace it is lazy
// (ops build a graph; reading a value evaluates it), inside a trace it stands for a value of the
// program being traced. Writing to a handle changes that handle alone; an argument declared by
// BufferLayout is the caller's memory, and writes go through to it.
#pragma once

#include <complex>
#include <concepts>
#include <cstring>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/base/dtype_of.h"
#include "tenon/frontend/extent.h"
#include "tenon/frontend/here.h"
#include "tenon/frontend/layout.h"
#include "tenon/ir/graph.h"
#include "tenon/runtime/array.h"

namespace tenon {

class Operand;
class Index;
class TensorView;
struct TensorState;

// Axes of a reduction: all of them, one, or a list. Negative ones count from the end.
struct Axes {
  Axes() = default;
  Axes(std::nullopt_t) {}                                   // NOLINT: all axes
  Axes(int axis) : list(std::vector<int64_t>{axis}) {}      // NOLINT
  Axes(int64_t axis) : list(std::vector<int64_t>{axis}) {}  // NOLINT
  Axes(std::initializer_list<int64_t> axes) : list(std::vector<int64_t>(axes)) {}  // NOLINT
  Axes(std::vector<int64_t> axes) : list(std::move(axes)) {}                       // NOLINT
  std::optional<std::vector<int64_t>> list;
};

class Tensor {
 public:
  // No value; for members that are set later.
  Tensor() = default;
  // A declaration in place of a value: what a struct of arguments holds when it is a spec.
  Tensor(const TensorLayout& layout);  // NOLINT: implicit by design
  // The memory of `array`, shared.
  explicit Tensor(runtime::Array array);
  // Memory owned elsewhere, without copying; `owner` is kept alive. Changes made to it from outside
  // are seen by later calls, but not by programs that have captured the tensor.
  static Tensor borrow(void* data, DType dtype, const std::vector<int64_t>& dims,
                       std::shared_ptr<const void> owner = nullptr, bool writable = true);
  // DLPack, without copying. Takes ownership.
  static Tensor from_dlpack(DLManagedTensor* tensor);
  DLManagedTensor* to_dlpack() const;

  // --- what is known without evaluating ---
  explicit operator bool() const;  // the only element; TraceError while tracing
  bool defined() const { return state_ != nullptr; }
  bool is_layout() const;  // a declaration
  bool is_traced() const;  // a value of a program being traced
  DType dtype() const;
  Extents shape() const;
  Extent shape(int64_t axis) const { return shape()[axis]; }
  size_t rank() const;
  // The sizes as numbers; TraceError while one is symbolic.
  std::vector<int64_t> dims() const;
  // The number of elements.
  Extent size() const;
  // The declaration that this tensor satisfies, with its sizes as numbers.
  TensorLayout layout(Here at = Here::current()) const;

  // --- values; TraceError while tracing ---
  Tensor& eval();
  // The only element. ValueError for another count; TypeError for a float read as an integer.
  template <class T>
  T item() const;
  // All elements, row-major, by the same rules.
  template <class T>
  std::vector<T> to_vector() const;
  const runtime::Array& array() const;  // evaluated
  // tensor([[1.0, 2.0]], f32[1, 2], cpu)
  std::string str() const;

  // --- indexing: x[0], x[{Slice(1, 3), Ellipsis, -1}], x["1:3"] ---
  TensorView operator[](Index index);
  const TensorView operator[](Index index) const;
  TensorView operator[](std::initializer_list<Index> index);
  const TensorView operator[](std::initializer_list<Index> index) const;
  // A new first axis walks: for (Tensor row : x). TraceError when its size is symbolic.
  class Iterator;
  Iterator begin(Here at = Here::current()) const;
  Iterator end() const;

  // --- writing: this handle gets a new value; an argument declared by BufferLayout is written ---
  void store(const Operand& value);
  void store(const Operand& value) const;  // buffers only: TypeError for anything else
  Tensor& operator+=(const Operand& value);
  Tensor& operator-=(const Operand& value);
  Tensor& operator*=(const Operand& value);
  Tensor& operator/=(const Operand& value);

  // --- ops as methods; functions.h has them all as functions ---
#define TENON_UNARY(NAME, ...) Tensor NAME(Here at = Here::current()) const;
#include "tenon/ops/unary.def"
#undef TENON_UNARY
  Tensor cast(DType dtype, Here at = Here::current()) const;
  Tensor sum(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor prod(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor max(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor min(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor mean(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor any(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor all(const Axes& axes = {}, bool keepdims = false, Here at = Here::current()) const;
  Tensor reshape(const Shape& shape, Here at = Here::current()) const;
  Tensor transpose(const Axes& perm = {}, Here at = Here::current()) const;
  Tensor squeeze(const Axes& axes = {}, Here at = Here::current()) const;
  Tensor expand_dims(const Axes& axes, Here at = Here::current()) const;
  Tensor broadcast_to(const Shape& shape, Here at = Here::current()) const;

  // For the code of the front end.
  explicit Tensor(std::shared_ptr<TensorState> state) : state_(std::move(state)) {}
  const std::shared_ptr<TensorState>& state() const { return state_; }

 private:
  double element_double(int64_t i) const;
  int64_t element_int(int64_t i) const;
  void check_readable(int64_t wanted_count, DType as, std::string_view function) const;

  std::shared_ptr<TensorState> state_;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Evaluates several tensors in one program.
void eval(const std::vector<Tensor*>& tensors);
template <class... T>
requires(std::same_as<T, Tensor>&&...) void eval(Tensor& first, T&... rest) {
  eval(std::vector<Tensor*>{&first, &rest...});
}

// --- tensors from values ---
Tensor from_bytes(const void* data, DType dtype, const std::vector<int64_t>& dims);
template <class T>
Tensor tensor(const std::vector<T>& values, const std::vector<int64_t>& dims) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return Tensor(runtime::Array::copy_of(DType::kBool, dims, bytes));
  } else {
    return Tensor(runtime::Array::copy_of(dtype_of<T>(), dims, values));
  }
}
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(std::initializer_list<T> values) {
  return tensor(std::vector<T>(values));
}
// Rows of one length.
template <class T>
requires std::is_arithmetic_v<T> Tensor
tensor(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  const auto columns = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
  return tensor(values, {static_cast<int64_t>(rows.size()), columns});
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value) {
  return tensor(std::vector<T>{value}, {});
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_readable(-1, dtype_of<T>(), "to_vector");
  const runtime::Array& data = array();
  std::vector<T> out;
  out.reserve(static_cast<size_t>(data.count()));
  for (int64_t i = 0; i < data.count(); ++i) {
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      out.push_back(data.dtype() == DType::kC64 ? data.as<T>()[i]
                                                : T(static_cast<float>(element_double(i))));
    } else if constexpr (std::is_floating_point_v<T>) {
      out.push_back(static_cast<T>(element_double(i)));
    } else {
      out.push_back(static_cast<T>(element_int(i)));
    }
  }
  return out;
}

template <class T>
T Tensor::item() const {
  check_readable(1, dtype_of<T>(), "item");
  return to_vector<T>()[0];
}

namespace program {
template <>
struct IsTensorLeaf<Tensor> : std::true_type {};
template <>
struct TensorLeaf<Tensor> {
  // Evaluates the tensor. A declaration and a tensor that is traced or not set stand as what they
  // are. Lazy tensors made from one that is written keep the old contents.
  static void append(Leaves& call, const Tensor& leaf, bool written);
};
}  // namespace program

}  // namespace tenon
