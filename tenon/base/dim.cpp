#include "tenon/base/dim.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tenon/base/dim_expr.h"
#include "tenon/base/error.h"

namespace tenon {
namespace {

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

[[noreturn]] void overflow() {
  throw ValueError("dim: the value does not fit in 64 bits", {.label = "dim_overflow"});
}

// What both ranges say; an empty intersection keeps the first.
DimRange intersect(const DimRange& a, const DimRange& b) {
  int64_t divisor =
      std::lcm(std::min(a.divisor, int64_t{1} << 31), std::min(b.divisor, int64_t{1} << 31));
  DimRange both{std::max(a.min, b.min), std::min(a.max, b.max), divisor};
  return both.min <= both.max ? both : a;
}

// Equal monomials whose names may carry different ranges: each name gets both.
Monomial merge_ranges(const Monomial& a, const Monomial& b) {
  Monomial out = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->kind != AtomKind::kSymbol || a[i]->range == b[i]->range) continue;
    out[i] = std::make_shared<Atom>(
        Atom{.name = a[i]->name, .range = intersect(a[i]->range, b[i]->range)});
  }
  return out;
}

Dim multiply_terms(const DimTerm& a, const DimTerm& b) {
  Monomial factors;
  factors.reserve(a.factors.size() + b.factors.size());
  std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
             std::back_inserter(factors),
             [](const AtomPtr& x, const AtomPtr& y) { return compare(*x, *y) < 0; });
  int64_t coef = checked_mul(a.coef, b.coef);
  // 4*(n//4) is n where 4 divides n.
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!is_exact_quotient(*factors[i])) continue;
    const Dim numerator = factors[i]->args[0];
    int64_t divisor = factors[i]->args[1].value();
    if (coef % divisor != 0) continue;
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
    Dim rest = factors.empty() ? Dim(coef / divisor)
                               : DimAlgebra::make({{coef / divisor, std::move(factors)}}, 0);
    return rest * numerator;
  }
  return DimAlgebra::make({{coef, std::move(factors)}}, 0);
}

void collect(const Dim& dim, std::map<std::string, DimRange>& out) {
  for (const DimTerm& term : DimAlgebra::terms(dim)) {
    for (const AtomPtr& atom : term.factors) {
      for (const Dim& arg : atom->args) collect(arg, out);
      if (atom->kind != AtomKind::kSymbol) continue;
      auto [it, fresh] = out.emplace(atom->name, atom->range);
      if (!fresh) it->second = intersect(it->second, atom->range);
    }
  }
}

Dim apply_function(AtomKind kind, const std::vector<Dim>& args) {
  if (kind == AtomKind::kFloorDiv) return floor_div(args[0], args[1]);
  if (kind == AtomKind::kMod) return mod(args[0], args[1]);
  Dim out = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    out = kind == AtomKind::kMax ? dim_max(out, args[i]) : dim_min(out, args[i]);
  }
  return out;
}

using Replace = std::function<std::optional<Dim>(std::string_view)>;

Dim substitute_atom(const AtomPtr& atom, const Replace& map) {
  if (atom->kind == AtomKind::kSymbol) {
    std::optional<Dim> found = map(atom->name);
    return found ? *found : DimAlgebra::make({{1, {atom}}}, 0);
  }
  std::vector<Dim> args;
  for (const Dim& arg : atom->args) args.push_back(arg.substitute(map));
  return apply_function(atom->kind, args);
}

int64_t eval_atom(const Atom& atom, const Dim::Lookup& lookup) {
  if (atom.kind == AtomKind::kSymbol) {
    std::optional<int64_t> value = lookup(atom.name);
    if (!value) throw KeyError(fmt::format("dim: no value is known for \"{}\"", atom.name));
    return *value;
  }
  int64_t out = atom.args[0].eval(lookup);
  for (size_t i = 1; i < atom.args.size(); ++i) {
    int64_t arg = atom.args[i].eval(lookup);
    switch (atom.kind) {
      case AtomKind::kFloorDiv: out = floor_div_int(out, arg); break;
      case AtomKind::kMod: out = mod_int(out, arg); break;
      case AtomKind::kMax: out = std::max(out, arg); break;
      default: out = std::min(out, arg); break;
    }
  }
  return out;
}

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 29);
}

}  // namespace

int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) overflow();
  return out;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) overflow();
  return out;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == 0) throw ValueError(fmt::format("dim: division of {} by zero", a));
  if (b == -1) return checked_mul(a, -1);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

int64_t mod_int(int64_t a, int64_t b) {
  if (b == 0) throw ValueError(fmt::format("dim: remainder of {} by zero", a));
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::strong_ordering compare(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (auto c = a.name.compare(b.name); c != 0) return c <=> 0;
  if (a.args.size() != b.args.size()) return a.args.size() <=> b.args.size();
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (auto c = compare(a.args[i], b.args[i]); c != 0) return c;
  }
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();  // higher degrees first
  for (size_t i = 0; i < a.size(); ++i) {
    if (auto c = compare(*a[i], *b[i]); c != 0) return c;
  }
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  auto ta = DimAlgebra::terms(a);
  auto tb = DimAlgebra::terms(b);
  for (size_t i = 0; i < std::min(ta.size(), tb.size()); ++i) {
    if (auto c = compare(ta[i].factors, tb[i].factors); c != 0) return c;
    if (ta[i].coef != tb[i].coef) return ta[i].coef <=> tb[i].coef;
  }
  if (ta.size() != tb.size()) return tb.size() <=> ta.size();  // numbers last
  return DimAlgebra::constant(a) <=> DimAlgebra::constant(b);
}

Dim DimAlgebra::make(std::vector<DimTerm> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& x, const DimTerm& y) { return compare(x.factors, y.factors) < 0; });
  std::vector<DimTerm> out;
  for (DimTerm& term : terms) {
    if (!out.empty() && compare(out.back().factors, term.factors) == 0) {
      out.back().coef = checked_add(out.back().coef, term.coef);
      out.back().factors = merge_ranges(out.back().factors, term.factors);
    } else {
      if (!out.empty() && out.back().coef == 0) out.pop_back();
      out.push_back(std::move(term));
    }
  }
  if (!out.empty() && out.back().coef == 0) out.pop_back();
  if (out.empty()) return Dim(constant);
  return Dim(std::make_shared<Dim::Expr>(Dim::Expr{std::move(out), constant}));
}

Dim DimAlgebra::of_atom(Atom atom) {
  return make({{1, {std::make_shared<Atom>(std::move(atom))}}}, 0);
}

Dim::Dim(std::string_view name, DimRange range) {
  if (!is_name(name)) {
    throw ValueError(fmt::format("dim: \"{}\" is not a name", name),
                     {.label = "dim_name",
                      .hint = "a name has letters, digits and _; Dim::parse reads expressions"});
  }
  if (range.min > range.max || range.divisor < 1) {
    throw ValueError(fmt::format("dim: \"{}\": no value is in [{}, {}] and divisible by {}", name,
                                 range.min, range.max, range.divisor),
                     {.label = "dim_range"});
  }
  *this = DimAlgebra::of_atom({.name = std::string(name), .range = range});
}

int64_t Dim::value() const {
  if (expr_) throw InternalError("dim: " + str() + " is symbolic where a number is needed");
  return value_;
}

std::optional<int64_t> Dim::static_value() const {
  return expr_ ? std::nullopt : std::optional<int64_t>(value_);
}

bool Dim::is_symbol() const {
  return expr_ && expr_->constant == 0 && expr_->terms.size() == 1 && expr_->terms[0].coef == 1 &&
         expr_->terms[0].factors.size() == 1 &&
         expr_->terms[0].factors[0]->kind == AtomKind::kSymbol;
}

std::string Dim::symbol() const { return is_symbol() ? expr_->terms[0].factors[0]->name : ""; }

bool Dim::operator==(const Dim& other) const {
  if (!expr_ && !other.expr_) return value_ == other.value_;
  return expr_ == other.expr_ || compare(*this, other) == 0;
}

size_t Dim::hash() const {
  size_t seed = mix(0, static_cast<size_t>(DimAlgebra::constant(*this)));
  for (const DimTerm& term : DimAlgebra::terms(*this)) {
    seed = mix(seed, static_cast<size_t>(term.coef));
    for (const AtomPtr& atom : term.factors) {
      seed = mix(seed, static_cast<size_t>(atom->kind) + 1);
      seed = mix(seed, std::hash<std::string>()(atom->name));
      for (const Dim& arg : atom->args) seed = mix(seed, arg.hash());
    }
  }
  return seed;
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t constant = checked_add(DimAlgebra::constant(a), DimAlgebra::constant(b));
  if (!a.expr_ && !b.expr_) return Dim(constant);
  std::vector<DimTerm> terms;
  for (const Dim* side : {&a, &b}) {
    auto of_side = DimAlgebra::terms(*side);
    terms.insert(terms.end(), of_side.begin(), of_side.end());
  }
  return DimAlgebra::make(std::move(terms), constant);
}

Dim operator-(const Dim& a, const Dim& b) {
  if (!a.expr_ && !b.expr_) {
    int64_t out;
    if (__builtin_sub_overflow(a.value_, b.value_, &out)) overflow();
    return Dim(out);
  }
  return a + Dim(-1) * b;
}

Dim operator*(const Dim& a, const Dim& b) {
  int64_t ca = DimAlgebra::constant(a);
  int64_t cb = DimAlgebra::constant(b);
  Dim sum(checked_mul(ca, cb));
  auto ta = DimAlgebra::terms(a);
  auto tb = DimAlgebra::terms(b);
  if (ta.empty() && tb.empty()) return sum;
  for (const DimTerm& y : tb) {
    if (ca != 0) sum = sum + multiply_terms({ca, {}}, y);
  }
  for (const DimTerm& x : ta) {
    if (cb != 0) sum = sum + multiply_terms(x, {cb, {}});
    for (const DimTerm& y : tb) sum = sum + multiply_terms(x, y);
  }
  return sum;
}

int64_t Dim::eval(const Lookup& lookup) const {
  int64_t sum = DimAlgebra::constant(*this);
  for (const DimTerm& term : DimAlgebra::terms(*this)) {
    int64_t product = term.coef;
    for (const AtomPtr& atom : term.factors)
      product = checked_mul(product, eval_atom(*atom, lookup));
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim Dim::substitute(const Replace& map) const {
  if (!expr_) return *this;
  Dim sum(expr_->constant);
  for (const DimTerm& term : expr_->terms) {
    Dim product(term.coef);
    for (const AtomPtr& atom : term.factors) product = product * substitute_atom(atom, map);
    sum = sum + product;
  }
  return sum;
}

std::vector<std::pair<std::string, DimRange>> Dim::symbols() const {
  std::map<std::string, DimRange> found;
  collect(*this, found);
  return {found.begin(), found.end()};
}

std::optional<AffineDim> as_affine(const Dim& dim) {
  const auto symbols = dim.symbols();
  if (symbols.size() != 1) return std::nullopt;
  const auto& [name, range] = symbols.front();
  const auto at = [&dim](int64_t value) {
    return dim.eval([value](std::string_view) { return std::optional<int64_t>(value); });
  };
  try {
    const int64_t offset = at(0);
    const int64_t scale = at(1) - offset;
    if (scale <= 0 || dim != Dim(name, range) * scale + offset) return std::nullopt;
    return AffineDim{name, range, scale, offset};
  } catch (const ValueError&) {  // overflow, or a division by the name
    return std::nullopt;
  }
}

Dim product(const Shape& shape) {
  Dim out(1);
  for (const Dim& dim : shape) out = out * dim;
  return out;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_static(); });
}

std::vector<int64_t> static_dims(const Shape& shape) {
  std::vector<int64_t> out;
  out.reserve(shape.size());
  for (const Dim& dim : shape) out.push_back(dim.value());
  return out;
}

}  // namespace tenon
