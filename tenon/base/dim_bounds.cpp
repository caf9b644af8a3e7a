// What the ranges of the names say of an expression: bounds by interval arithmetic that saturates
// at infinity, and divisors.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "tenon/base/dim_expr.h"

namespace tenon {
namespace {

constexpr int64_t kPlusInf = DimRange::kInf;
constexpr int64_t kMinusInf = std::numeric_limits<int64_t>::min();

bool finite(int64_t v) { return v != kPlusInf && v != kMinusInf; }

int64_t saturating_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t out;
  bool overflow = !finite(a) || !finite(b) || __builtin_mul_overflow(a, b, &out);
  if (overflow) return (a < 0) == (b < 0) ? kPlusInf : kMinusInf;
  return out;
}

// Of two bounds on the same side: an infinite one wins.
int64_t saturating_add(int64_t a, int64_t b) {
  if (!finite(a)) return a;
  if (!finite(b)) return b;
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return a > 0 ? kPlusInf : kMinusInf;
  return out;
}

struct Interval {
  int64_t low = kMinusInf;
  int64_t high = kPlusInf;
};

Interval operator*(const Interval& a, const Interval& b) {
  std::array<int64_t, 4> corners = {saturating_mul(a.low, b.low), saturating_mul(a.low, b.high),
                                    saturating_mul(a.high, b.low), saturating_mul(a.high, b.high)};
  return {*std::min_element(corners.begin(), corners.end()),
          *std::max_element(corners.begin(), corners.end())};
}

Interval interval(const Dim& dim);

int64_t floor_div_bound(int64_t a, int64_t b) {
  if (!finite(a)) return a;
  if (!finite(b)) return a < 0 ? -1 : 0;
  return floor_div_int(a, b);
}

Interval quotient(const Interval& a, const Interval& b) {
  if (b.low < 1) return {};
  std::array<int64_t, 4> corners = {floor_div_bound(a.low, b.low), floor_div_bound(a.low, b.high),
                                    floor_div_bound(a.high, b.low),
                                    floor_div_bound(a.high, b.high)};
  return {*std::min_element(corners.begin(), corners.end()),
          *std::max_element(corners.begin(), corners.end())};
}

Interval remainder(const Interval& a, const Interval& b) {
  if (b.low < 1) return {};
  int64_t high = b.high == kPlusInf ? kPlusInf : b.high - 1;
  if (a.low >= 0) high = std::min(high, a.high);
  return {0, high};
}

Interval interval(const Atom& atom) {
  if (atom.kind == AtomKind::kSymbol) return {atom.range.min, atom.range.max};
  Interval out = interval(atom.args[0]);
  for (size_t i = 1; i < atom.args.size(); ++i) {
    Interval arg = interval(atom.args[i]);
    switch (atom.kind) {
      case AtomKind::kFloorDiv: out = quotient(out, arg); break;
      case AtomKind::kMod: out = remainder(out, arg); break;
      case AtomKind::kMax: out = {std::max(out.low, arg.low), std::max(out.high, arg.high)}; break;
      default: out = {std::min(out.low, arg.low), std::min(out.high, arg.high)}; break;
    }
  }
  return out;
}

Interval interval(const Dim& dim) {
  int64_t constant = DimAlgebra::constant(dim);
  Interval sum{constant, constant};
  for (const DimTerm& term : DimAlgebra::terms(dim)) {
    Interval product{term.coef, term.coef};
    for (const AtomPtr& atom : term.factors) product = product * interval(*atom);
    sum = {saturating_add(sum.low, product.low), saturating_add(sum.high, product.high)};
  }
  return sum;
}

// The polynomial in atoms shifted by their lower bounds (a = low + a', a' >= 0): where all its
// coefficients agree in sign its constant is a bound that plain intervals miss (a*b - a >= 0 for
// b >= 1). nullopt when an atom has no lower bound.
std::optional<Dim> shift_to_origin(const Dim& dim) {
  Dim sum(DimAlgebra::constant(dim));
  for (const DimTerm& term : DimAlgebra::terms(dim)) {
    Dim product(term.coef);
    for (const AtomPtr& atom : term.factors) {
      if (is_exact_quotient(*atom)) return std::nullopt;  // the product would rewrite it unshifted
      int64_t low = interval(*atom).low;
      // A bound this large is of no use and could overflow on the way.
      if (low < -(int64_t{1} << 15) || low > int64_t{1} << 15) return std::nullopt;
      product = product * (DimAlgebra::make({{1, {atom}}}, 0) + Dim(low));
    }
    sum = sum + product;
  }
  return sum;
}

bool worth_shifting(const Dim& dim) {
  auto terms = DimAlgebra::terms(dim);
  return terms.size() >= 2 && terms.size() <= 16 &&
         std::all_of(terms.begin(), terms.end(), [](const DimTerm& t) {
           return t.factors.size() <= 4 && std::llabs(t.coef) < (int64_t{1} << 31);
         });
}

int64_t sharpen(const Dim& dim, int64_t bound, bool lower) {
  if (!worth_shifting(dim)) return bound;
  if (std::llabs(DimAlgebra::constant(dim)) > (int64_t{1} << 61)) return bound;
  std::optional<Dim> shifted = shift_to_origin(dim);
  if (!shifted) return bound;
  for (const DimTerm& term : DimAlgebra::terms(*shifted)) {
    if (lower ? term.coef < 0 : term.coef > 0) return bound;
  }
  int64_t constant = DimAlgebra::constant(*shifted);
  return lower ? std::max(bound, constant) : std::min(bound, constant);
}

}  // namespace

int64_t Dim::lower_bound() const {
  return expr_ ? sharpen(*this, interval(*this).low, true) : value_;
}

int64_t Dim::upper_bound() const {
  return expr_ ? sharpen(*this, interval(*this).high, false) : value_;
}

int64_t atom_divisor(const Atom& atom) {
  if (atom.kind == AtomKind::kSymbol) return atom.range.divisor;
  int64_t out = atom.args[0].known_divisor();
  if (atom.kind == AtomKind::kFloorDiv) {
    return is_exact_quotient(atom) ? out / atom.args[1].value() : 1;
  }
  for (size_t i = 1; i < atom.args.size(); ++i) out = std::gcd(out, atom.args[i].known_divisor());
  return out;
}

bool is_exact_quotient(const Atom& atom) {
  return atom.kind == AtomKind::kFloorDiv && atom.args[1].is_static() && atom.args[1].value() > 0 &&
         atom.args[0].known_divisor() % atom.args[1].value() == 0;
}

int64_t term_divisor(const DimTerm& term) {
  int64_t out = term.coef == kMinusInf ? 1 : std::llabs(term.coef);
  for (const AtomPtr& atom : term.factors) {
    int64_t product = saturating_mul(out, atom_divisor(*atom));
    if (product == kPlusInf) break;
    out = product;
  }
  return out;
}

int64_t Dim::known_divisor() const {
  int64_t out = DimAlgebra::constant(*this);
  if (out == kMinusInf) out = int64_t{1} << 62;  // its magnitude has no 64-bit form
  for (const DimTerm& term : DimAlgebra::terms(*this)) out = std::gcd(out, term_divisor(term));
  return out < 0 ? -out : out;
}

std::optional<bool> Dim::equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  Dim difference = a - b;
  int64_t low = difference.lower_bound();
  int64_t high = difference.upper_bound();
  if (low > 0 || high < 0) return false;
  if (low == 0 && high == 0) return true;
  int64_t constant = DimAlgebra::constant(difference);
  int64_t divisor = (difference - Dim(constant)).known_divisor();
  if (divisor > 1 && constant % divisor != 0) return false;
  return std::nullopt;
}

std::optional<bool> Dim::less(const Dim& a, const Dim& b) {
  Dim difference = b - a;
  if (difference.lower_bound() > 0) return true;
  if (difference.upper_bound() <= 0) return false;
  return std::nullopt;
}

}  // namespace tenon
