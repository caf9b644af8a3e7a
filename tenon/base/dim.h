// Dimensions and their algebra. A dimension is a number, a name, or an expression of names:
// 4, batch, 2*batch + 1, n//4, max(n, 3). Expressions are kept in one canonical form (a sum of
// integer multiples of products of atoms), so equal polynomials compare equal.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// What is known of a name: lower and upper bound (inclusive) and a divisor.
struct DimRange {
  static constexpr int64_t kInf = std::numeric_limits<int64_t>::max();
  int64_t min = 0;
  int64_t max = kInf;
  int64_t divisor = 1;
  bool operator==(const DimRange&) const = default;
};

class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a dimension
  Dim(int value) : value_(value) {}          // NOLINT
  // A name: [A-Za-z_][A-Za-z0-9_]*. Raises ValueError naming the offender. A name's range is part
  // of the value and stays through arithmetic; two dims of one name with different ranges are equal
  // by name, and where they meet in one expression the name has both ranges. Raises ValueError for
  // a range that holds no number or a divisor below 1.
  Dim(const char* name) : Dim(std::string_view(name)) {}         // NOLINT
  Dim(const std::string& name) : Dim(std::string_view(name)) {}  // NOLINT
  Dim(std::string_view name, DimRange range = {});               // NOLINT
  // Reads the text form of str(): "2*batch + n//4". Raises ValueError on anything else. The text
  // does not carry ranges: `ranges` gives each name its own, by default [0, inf).
  using Ranges = std::function<DimRange(std::string_view name)>;
  static Dim parse(std::string_view text, const Ranges& ranges = {});

  bool is_static() const { return expr_ == nullptr; }
  // The number; raises InternalError for a symbolic dimension.
  int64_t value() const;
  std::optional<int64_t> static_value() const;
  bool is_symbol() const;  // one bare name
  // The bare name; empty for anything else.
  std::string symbol() const;

  // Bounds on the value from the ranges of the names, not always the tightest.
  int64_t lower_bound() const;  // INT64_MIN when unbounded
  int64_t upper_bound() const;  // DimRange::kInf when unbounded
  // Largest known d with d | *this; 0 for the number 0.
  int64_t known_divisor() const;

  // nullopt: not decided by the ranges.
  static std::optional<bool> equal(const Dim& a, const Dim& b);
  static std::optional<bool> less(const Dim& a, const Dim& b);

  // Canonical structural equality: the same for all values of the names.
  bool operator==(const Dim& other) const;
  bool operator!=(const Dim& other) const { return !(*this == other); }
  size_t hash() const;

  // Arithmetic raises ValueError where a coefficient does not fit in 64 bits.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // Floor division and its remainder (sign of the divisor), as in Python. Raise ValueError for a
  // divisor of 0. Exact where it can be: (4*n)//2 == 2*n, (4*n + 3)//4 == n, (4*n)%2 == 0. A
  // symbolic divisor is taken to be other than 0: (m*n)//n == m.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim dim_max(const Dim& a, const Dim& b);
  friend Dim dim_min(const Dim& a, const Dim& b);

  // The value for given names. Raises KeyError for a name that `lookup` does not know, ValueError
  // on overflow and on division by 0. Ranges are not checked.
  using Lookup = std::function<std::optional<int64_t>(std::string_view name)>;
  int64_t eval(const Lookup& lookup) const;
  // Replaces names by dimensions; names not known stay.
  Dim substitute(const std::function<std::optional<Dim>(std::string_view)>& map) const;
  // Every name that occurs, sorted, each once, with its range.
  std::vector<std::pair<std::string, DimRange>> symbols() const;

  std::string str() const;

  struct Expr;  // internal: canonical polynomial

 private:
  explicit Dim(std::shared_ptr<const Expr> expr) : expr_(std::move(expr)) {}
  friend struct DimAlgebra;
  int64_t value_ = 0;
  std::shared_ptr<const Expr> expr_;  // null: the number value_
};

// scale * name + offset with a positive scale: a size from which the name can be told.
struct AffineDim {
  std::string name;
  DimRange range;
  int64_t scale = 1;
  int64_t offset = 0;
};
// nullopt for a dimension of another form.
std::optional<AffineDim> as_affine(const Dim& dim);

Dim floor_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim dim_max(const Dim& a, const Dim& b);
Dim dim_min(const Dim& a, const Dim& b);
inline Dim operator/(const Dim& a, const Dim& b) { return floor_div(a, b); }
inline Dim operator%(const Dim& a, const Dim& b) { return mod(a, b); }

using Shape = std::vector<Dim>;

// Product; 1 for an empty shape.
Dim product(const Shape& shape);
bool is_static(const Shape& shape);
// The numbers; raises InternalError when any dimension is symbolic.
std::vector<int64_t> static_dims(const Shape& shape);
// [4, "batch", "2*batch"]: numbers bare, everything else quoted; the text form of types. Dim::parse
// reads what stands between the quotes.
std::string str(const Shape& shape);

}  // namespace tenon
