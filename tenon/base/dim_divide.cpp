// Floor division, remainder, maximum and minimum of dimensions: what the algebra can decide, and an
// atom for what it cannot.
#include <algorithm>
#include <numeric>

#include "tenon/base/dim_expr.h"
#include "tenon/base/error.h"

namespace tenon {
namespace {

Dim negate(const Dim& a) { return Dim(-1) * a; }

bool bounded_within(const Dim& a, int64_t low, int64_t high_exclusive) {
  return a.lower_bound() >= low && a.upper_bound() < high_exclusive;
}

// a / b when the multivariate division leaves no remainder.
std::optional<Dim> exact_quotient(Dim a, const Dim& b) {
  const DimTerm& lead = DimAlgebra::terms(b)[0];
  Dim quotient(0);
  for (int steps = 0; steps < 64; ++steps) {
    auto terms = DimAlgebra::terms(a);
    if (terms.empty()) break;
    if (terms[0].coef % lead.coef != 0) return std::nullopt;
    Monomial rest;
    size_t j = 0;
    for (const AtomPtr& atom : terms[0].factors) {
      if (j < lead.factors.size() && compare(*atom, *lead.factors[j]) == 0) {
        ++j;
      } else {
        rest.push_back(atom);
      }
    }
    if (j < lead.factors.size()) return std::nullopt;
    int64_t coef = terms[0].coef / lead.coef;
    Dim part = rest.empty() ? Dim(coef) : DimAlgebra::make({{coef, std::move(rest)}}, 0);
    quotient = quotient + part;
    a = a - part * b;
  }
  if (!a.is_static() || a.value() != 0) return std::nullopt;
  return quotient;
}

// (x//p + c)//b is (x + p*c)//(p*b) for positive p and b.
std::optional<Dim> flatten_quotient(const Dim& a, int64_t b) {
  auto terms = DimAlgebra::terms(a);
  if (terms.size() != 1 || terms[0].coef != 1 || terms[0].factors.size() != 1) return std::nullopt;
  const Atom& atom = *terms[0].factors[0];
  if (atom.kind != AtomKind::kFloorDiv || !atom.args[1].is_static()) return std::nullopt;
  int64_t p = atom.args[1].value();
  if (p <= 0) return std::nullopt;
  return floor_div(atom.args[0] + Dim(checked_mul(p, DimAlgebra::constant(a))),
                   Dim(checked_mul(p, b)));
}

Dim floor_div_by_number(const Dim& a, int64_t b) {
  if (b == 1) return a;
  // Whole multiples of b leave the quotient; what remains is smaller than b in each coefficient.
  std::vector<DimTerm> outside;
  std::vector<DimTerm> inside;
  int64_t common = b;
  for (const DimTerm& term : DimAlgebra::terms(a)) {
    if (term.coef / b != 0) outside.push_back({term.coef / b, term.factors});
    if (term.coef % b == 0) continue;
    inside.push_back({term.coef % b, term.factors});
    common = std::gcd(common, term.coef % b);
  }
  int64_t constant = DimAlgebra::constant(a);
  Dim whole = DimAlgebra::make(std::move(outside), floor_div_int(constant, b));
  if (inside.empty()) return whole;
  for (DimTerm& term : inside) term.coef /= common;
  Dim rest = DimAlgebra::make(std::move(inside), mod_int(constant, b) / common);
  b /= common;
  if (b == 1) return whole + rest;
  int64_t low = rest.lower_bound();
  int64_t high = rest.upper_bound();
  if (low != std::numeric_limits<int64_t>::min() && high != DimRange::kInf &&
      floor_div_int(low, b) == floor_div_int(high, b)) {
    return whole + Dim(floor_div_int(low, b));
  }
  if (auto flat = flatten_quotient(rest, b)) return whole + *flat;
  return whole + DimAlgebra::of_atom({.kind = AtomKind::kFloorDiv, .args = {rest, Dim(b)}});
}

Dim mod_by_number(const Dim& a, int64_t b) {
  if (b == 1) return Dim(0);
  std::vector<DimTerm> inside;
  for (const DimTerm& term : DimAlgebra::terms(a)) {
    if (term_divisor(term) % b == 0) continue;
    inside.push_back({term.coef % b, term.factors});
  }
  Dim rest = DimAlgebra::make(std::move(inside), mod_int(DimAlgebra::constant(a), b));
  if (rest.is_static() || bounded_within(rest, 0, b)) return rest;
  return DimAlgebra::of_atom({.kind = AtomKind::kMod, .args = {rest, Dim(b)}});
}

// The arguments of a max or min atom, else the dimension itself.
void append_flat(AtomKind kind, const Dim& dim, std::vector<Dim>& out) {
  auto terms = DimAlgebra::terms(dim);
  if (terms.size() == 1 && terms[0].coef == 1 && terms[0].factors.size() == 1 &&
      DimAlgebra::constant(dim) == 0 && terms[0].factors[0]->kind == kind) {
    const auto& args = terms[0].factors[0]->args;
    out.insert(out.end(), args.begin(), args.end());
  } else {
    out.push_back(dim);
  }
}

// True when `b` is never the winner against `a`.
bool dominates(AtomKind kind, const Dim& a, const Dim& b) {
  Dim margin = kind == AtomKind::kMax ? a - b : b - a;
  return margin.lower_bound() >= 0;
}

Dim extremum(AtomKind kind, const Dim& a, const Dim& b) {
  std::vector<Dim> all;
  append_flat(kind, a, all);
  append_flat(kind, b, all);
  std::vector<Dim> kept;
  for (const Dim& dim : all) {
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const Dim& k) { return dominates(kind, k, dim); }))
      continue;
    std::erase_if(kept, [&](const Dim& k) { return dominates(kind, dim, k); });
    kept.push_back(dim);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });
  return DimAlgebra::of_atom({.kind = kind, .args = std::move(kept)});
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_static()) {
    int64_t divisor = b.value();
    if (a.is_static() || divisor == 0) {
      if (divisor == 0) throw ValueError("dim: division of " + a.str() + " by zero");
      return Dim(floor_div_int(a.value(), divisor));
    }
    if (divisor < 0) return floor_div_by_number(negate(a), checked_mul(divisor, -1));
    return floor_div_by_number(a, divisor);
  }
  if (auto exact = exact_quotient(a, b)) return *exact;
  if (a.lower_bound() >= 0 && (b - a).lower_bound() > 0) return Dim(0);
  return DimAlgebra::of_atom({.kind = AtomKind::kFloorDiv, .args = {a, b}});
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_static()) {
    int64_t divisor = b.value();
    if (divisor == 0) throw ValueError("dim: remainder of " + a.str() + " by zero");
    if (a.is_static()) return Dim(mod_int(a.value(), divisor));
    if (divisor < 0) return negate(mod_by_number(negate(a), checked_mul(divisor, -1)));
    return mod_by_number(a, divisor);
  }
  if (exact_quotient(a, b)) return Dim(0);
  if (a.lower_bound() >= 0 && (b - a).lower_bound() > 0) return a;
  return DimAlgebra::of_atom({.kind = AtomKind::kMod, .args = {a, b}});
}

Dim dim_max(const Dim& a, const Dim& b) { return extremum(AtomKind::kMax, a, b); }
Dim dim_min(const Dim& a, const Dim& b) { return extremum(AtomKind::kMin, a, b); }

}  // namespace tenon
