// The sizes of a tensor as a function sees them. Under tracing a size may be symbolic: arithmetic
// stays symbolic, and a comparison is decided by the declared ranges of the names or raises
// TraceError with the place of the comparison. Nothing specialises silently.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "tenon/base/dim.h"
#include "tenon/frontend/here.h"

namespace tenon {

class Extent {
 public:
  explicit Extent(Dim dim) : dim_(std::move(dim)) {}
  operator const Dim&() const { return dim_; }  // NOLINT: a dimension to ops and layouts
  const Dim& dim() const { return dim_; }
  // The number; TraceError while it is symbolic.
  int64_t value(Here at = Here::current()) const;
  explicit operator int64_t() const { return value(); }
  std::string str() const { return dim_.str(); }

 private:
  Dim dim_;
};

// The right-hand side of a comparison, with the place where it stands.
class ExtentOperand {
 public:
  ExtentOperand(const Extent& extent, Here at = Here::current())  // NOLINT: implicit by design
      : dim(extent.dim()), at(at) {}
  ExtentOperand(const Dim& value, Here at = Here::current()) : dim(value), at(at) {}  // NOLINT
  template <std::integral T>
  ExtentOperand(T value, Here at = Here::current())  // NOLINT
      : dim(static_cast<int64_t>(value)), at(at) {}
  ExtentOperand(const char* value, Here at = Here::current()) : dim(value), at(at) {}  // NOLINT

  Dim dim;
  Here at;
};

// Decided by the ranges, or TraceError.
bool operator==(const Extent& a, const ExtentOperand& b);
bool operator<(const Extent& a, const ExtentOperand& b);
bool operator<=(const Extent& a, const ExtentOperand& b);
bool operator>(const Extent& a, const ExtentOperand& b);
bool operator>=(const Extent& a, const ExtentOperand& b);
inline bool operator!=(const Extent& a, const ExtentOperand& b) { return !(a == b); }
inline bool operator<(int64_t a, const Extent& b) { return b > a; }
inline bool operator>(int64_t a, const Extent& b) { return b < a; }
inline bool operator<=(int64_t a, const Extent& b) { return b >= a; }
inline bool operator>=(int64_t a, const Extent& b) { return b <= a; }

#define TENON_EXTENT_OPERATOR(OP, A, B, DIM_A, DIM_B) \
  inline Extent operator OP(A a, B b) { return Extent(DIM_A OP DIM_B); }
#define TENON_EXTENT_ARITHMETIC(OP) \
  TENON_EXTENT_OPERATOR(OP, const Extent&, const Extent&, a.dim(), b.dim()) \
  TENON_EXTENT_OPERATOR(OP, const Extent&, const Dim&, a.dim(), b) \
  TENON_EXTENT_OPERATOR(OP, const Dim&, const Extent&, a, b.dim()) \
  TENON_EXTENT_OPERATOR(OP, const Extent&, int64_t, a.dim(), Dim(b)) \
  TENON_EXTENT_OPERATOR(OP, int64_t, const Extent&, Dim(a), b.dim()) \
  TENON_EXTENT_OPERATOR(OP, const Extent&, int, a.dim(), Dim(b)) \
  TENON_EXTENT_OPERATOR(OP, int, const Extent&, Dim(a), b.dim())
TENON_EXTENT_ARITHMETIC(+)
TENON_EXTENT_ARITHMETIC(-)
TENON_EXTENT_ARITHMETIC(*)
TENON_EXTENT_ARITHMETIC(/)
TENON_EXTENT_ARITHMETIC(%)
#undef TENON_EXTENT_ARITHMETIC
#undef TENON_EXTENT_OPERATOR

class Extents {
 public:
  explicit Extents(const Shape& shape) : list_(shape.begin(), shape.end()) {}
  operator Shape() const { return {list_.begin(), list_.end()}; }  // NOLINT: a shape to ops
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // Negative positions count from the end; IndexError outside.
  const Extent& operator[](int64_t i) const;
  const Extent& back() const { return (*this)[-1]; }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::string str() const { return tenon::str(Shape(*this)); }

 private:
  std::vector<Extent> list_;
};
// Rank and every size, decided as above.
bool equal(const Extents& a, const Shape& b, Here at = Here::current());

}  // namespace tenon
