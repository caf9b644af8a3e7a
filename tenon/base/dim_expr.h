// Inside of Dim: the canonical polynomial. A sum of terms and a constant; a term is a coefficient
// times a sorted product of atoms; an atom is a name or an application of a function that the
// algebra could not remove. Only dim*.cpp include this.
#pragma once

#include <compare>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/base/dim.h"

namespace tenon {

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMod, kMax, kMin };

struct Atom {
  AtomKind kind = AtomKind::kSymbol;
  std::string name = {};  // of a symbol
  DimRange range = {};
  std::vector<Dim> args = {};  // two for division and remainder, sorted and two or more else
};

using AtomPtr = std::shared_ptr<const Atom>;
using Monomial = std::vector<AtomPtr>;  // sorted; never empty inside an Expr

struct DimTerm {
  int64_t coef = 0;
  Monomial factors;
};

// Terms in graded lexicographic order, none with coefficient 0, at least one.
struct Dim::Expr {
  std::vector<DimTerm> terms;
  int64_t constant = 0;
};

// The only door to a Dim's expression.
struct DimAlgebra {
  static const Dim::Expr* expr(const Dim& d) { return d.expr_.get(); }
  static int64_t constant(const Dim& d) { return d.expr_ ? d.expr_->constant : d.value_; }
  static std::span<const DimTerm> terms(const Dim& d) {
    return d.expr_ ? std::span<const DimTerm>(d.expr_->terms) : std::span<const DimTerm>();
  }
  // Sorts, merges equal monomials and drops zeros.
  static Dim make(std::vector<DimTerm> terms, int64_t constant);
  static Dim of_atom(Atom atom);
};

// By structure; names compare without their ranges.
std::strong_ordering compare(const Atom& a, const Atom& b);
std::strong_ordering compare(const Monomial& a, const Monomial& b);
std::strong_ordering compare(const Dim& a, const Dim& b);

// Raise ValueError on overflow.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_div_int(int64_t a, int64_t b);
int64_t mod_int(int64_t a, int64_t b);

// Largest known divisor of an atom; 0 for an atom that is always 0.
int64_t atom_divisor(const Atom& atom);
int64_t term_divisor(const DimTerm& term);
// True for an exact quotient: floor_div(a, b) with b a positive number that divides a for sure.
bool is_exact_quotient(const Atom& atom);

}  // namespace tenon
