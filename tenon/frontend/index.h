// NumPy's indexing: x[i], x[{Slice(1, 3), Ellipsis, -1}], x["1:-1:2"], x[{indices}].
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/frontend/operand.h"
#include "tenon/frontend/tensor.h"

namespace tenon {

struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;  // NOLINT: as Python spells it
struct NewAxisType {};
inline constexpr NewAxisType NewAxis;  // NOLINT

// Python's slice: missing bounds are the ends, negative ones count from the end, all are clamped.
struct Slice {
  Slice() = default;
  Slice(std::optional<Dim> start, std::optional<Dim> stop, int64_t step = 1)
      : start(std::move(start)), stop(std::move(stop)), step(step) {}
  std::optional<Dim> start;
  std::optional<Dim> stop;
  int64_t step = 1;
};

class Index {
 public:
  template <std::integral T>
  Index(T i, Here at = Here::current())  // NOLINT: implicit by design
      : item(Dim(static_cast<int64_t>(i))), at(at) {}
  Index(const Extent& i, Here at = Here::current()) : item(i.dim()), at(at) {}  // NOLINT
  Index(Slice slice, Here at = Here::current()) : item(slice), at(at) {}        // NOLINT
  Index(EllipsisType e, Here at = Here::current()) : item(e), at(at) {}         // NOLINT
  Index(NewAxisType n, Here at = Here::current()) : item(n), at(at) {}          // NOLINT
  // Integers: elements are taken along the axis. A boolean mask is refused: its size is not known
  // before it runs.
  Index(const Tensor& indices, Here at = Here::current()) : item(indices), at(at) {}  // NOLINT
  // "1:3", "::-1", ":", "...", "4"; ValueError otherwise.
  Index(const char* text, Here at = Here::current());  // NOLINT

  std::variant<Dim, Slice, EllipsisType, NewAxisType, Tensor> item;
  Here at;
};

// A part of a tensor: reads as a Tensor, and can be assigned to.
class TensorView {
 public:
  TensorView(Tensor* target, const Tensor& base, std::vector<Index> index)
      : target_(target), base_(base), index_(std::move(index)) {}
  operator Tensor() const { return get(); }  // NOLINT: a view is a tensor
  Tensor get() const;
  // A part of the part, for reading.
  TensorView operator[](Index index) const;
  TensorView operator[](std::initializer_list<Index> index) const;
  // Writes to the tensor that was indexed: to its handle, or to the buffer that it is.
  const TensorView& operator=(const Operand& value) const;
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): the value is read whole before the write
  const TensorView& operator=(const TensorView& value) const {
    return *this = Operand(value.get());
  }
  TensorView(const TensorView&) = default;
  const TensorView& operator+=(const Operand& value) const;
  const TensorView& operator-=(const Operand& value) const;
  const TensorView& operator*=(const Operand& value) const;

 private:
  Tensor* target_;  // null: only a buffer can be written through it
  Tensor base_;
  std::vector<Index> index_;
};

class Tensor::Iterator {
 public:
  using value_type = Tensor;
  using difference_type = int64_t;
  Iterator(const Tensor& tensor, int64_t i) : tensor_(tensor), i_(i) {}
  Tensor operator*() const;
  Iterator& operator++() {
    ++i_;
    return *this;
  }
  bool operator==(const Iterator& other) const { return i_ == other.i_; }

 private:
  Tensor tensor_;
  int64_t i_;
};

}  // namespace tenon
