// Division and remainder of index expressions with knowledge of ranges.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tenon/kir/builder.h"

namespace tenon::kir {

// An index is a polynomial: products of values that are opaque to it (loop variables, loaded
// indices) with dimensions as coefficients.
class IndexAlgebra {
 public:
  explicit IndexAlgebra(Builder& builder) : builder_(builder) {}

  Val div(Val a, const Dim& divisor);
  Val rem(Val a, const Dim& divisor);
  void set_bound(Val value, const Dim& bound);  // 0 <= value < bound
  // Derives the range of a loop's variable from its limits, where they are known.
  void set_loop_range(Val var, Val lo, Val hi);

 private:
  using Product = std::vector<Val>;  // sorted by id; empty: the constant term
  struct ById {
    bool operator()(const Product& a, const Product& b) const;
  };
  using Poly = std::map<Product, Dim, ById>;

  const Poly& poly(Val value);
  Poly expand(Val value);
  std::optional<Dim> maximum(const Poly& p) const;  // for polynomials that cannot be negative
  std::optional<Dim> limit(Val value);
  bool below(const Poly& p, const Dim& divisor) const;  // 0 <= p < divisor is known
  Val build(const Poly& p);
  Val divide(const Poly& p, const Dim& divisor, Val original);
  Val remainder(const Poly& p, const Dim& divisor, Val original);
  Val safe_divisor(const Dim& divisor);

  Builder& builder_;
  std::unordered_map<Val, Poly> polys_;
  std::unordered_map<Val, Dim> bounds_;
};

}  // namespace tenon::kir
