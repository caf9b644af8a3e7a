#include "tenon/kir/index.h"

#include <algorithm>

namespace tenon::kir {

namespace {

constexpr size_t kMaxTerms = 24;

// coefficient / divisor where the division is exact.
std::optional<Dim> exact_quotient(const Dim& coefficient, const Dim& divisor) {
  Dim quotient = floor_div(coefficient, divisor);
  if (quotient * divisor == coefficient) return quotient;
  return std::nullopt;
}

bool is_zero(const Dim& dim) { return dim == Dim(0); }

// c where the value is x / c, else 0.
int64_t constant_divisor(const Inst& value) {
  if (value.op != Op::kUDiv && value.op != Op::kLShr) return 0;
  const Inst& by = *value.args[1];
  if (by.op != Op::kConst || by.imm_int < 0) return 0;
  if (value.op == Op::kUDiv) return by.imm_int;
  return by.imm_int < 31 ? int64_t{1} << by.imm_int : 0;
}

template <class Poly>
void add_term(Poly& p, const typename Poly::key_type& product, const Dim& coefficient) {
  auto [it, fresh] = p.emplace(product, coefficient);
  if (!fresh) it->second = it->second + coefficient;
  if (is_zero(it->second)) p.erase(it);
}

// p = divisible * divisor + rest.
template <class Poly>
void split(const Poly& p, const Dim& divisor, Poly& divisible, Poly& rest) {
  for (const auto& [product, coefficient] : p) {
    if (auto quotient = exact_quotient(coefficient, divisor))
      divisible[product] = *quotient;
    else if (product.empty() && coefficient.is_static() && divisor.is_static()) {
      Dim quotient_of_constant = floor_div(coefficient, divisor);
      if (!is_zero(quotient_of_constant)) divisible[product] = quotient_of_constant;
      rest[product] = mod(coefficient, divisor);
    } else {
      rest[product] = coefficient;
    }
  }
}

}  // namespace

bool IndexAlgebra::ById::operator()(const Product& a, const Product& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](Val x, Val y) { return x->id < y->id; });
}

const IndexAlgebra::Poly& IndexAlgebra::poly(Val value) {
  if (auto it = polys_.find(value); it != polys_.end()) return it->second;
  Poly p = expand(value);
  if (p.size() > kMaxTerms) p = Poly{{Product{value}, Dim(1)}};
  return polys_.emplace(value, std::move(p)).first->second;
}

IndexAlgebra::Poly IndexAlgebra::expand(Val value) {
  Poly p;
  switch (value->op) {
    case Op::kConst:
      if (value->imm_int != 0) p[{}] = Dim(value->imm_int);
      return p;
    case Op::kDimArg: p[{}] = builder_.kernel().dims[static_cast<size_t>(value->imm_int)]; return p;
    case Op::kAdd:
    case Op::kSub: {
      p = poly(value->args[0]);
      Dim sign = value->op == Op::kAdd ? 1 : -1;
      for (const auto& [product, coefficient] : poly(value->args[1]))
        add_term(p, product, coefficient * sign);
      return p;
    }
    case Op::kMul: {
      const Poly a = poly(value->args[0]);
      for (const auto& [product_b, b] : poly(value->args[1])) {
        for (const auto& [product_a, c] : a) {
          Product product = product_a;
          product.insert(product.end(), product_b.begin(), product_b.end());
          std::sort(product.begin(), product.end(), [](Val x, Val y) { return x->id < y->id; });
          add_term(p, product, b * c);
        }
      }
      return p;
    }
    case Op::kShl:
      if (value->args[1]->op == Op::kConst && value->args[1]->imm_int < 62) {
        p = poly(value->args[0]);
        for (auto& [product, coefficient] : p)
          coefficient = coefficient * Dim(int64_t{1} << value->args[1]->imm_int);
        return p;
      }
      break;
    default: break;
  }
  p[Product{value}] = Dim(1);
  return p;
}

std::optional<Dim> IndexAlgebra::maximum(const Poly& p) const {
  Dim sum = 0;
  for (const auto& [product, coefficient] : p) {
    if (coefficient.lower_bound() < 0) return std::nullopt;
    Dim term = coefficient;
    for (Val atom : product) {
      auto it = bounds_.find(atom);
      if (it == bounds_.end()) return std::nullopt;
      term = term * (it->second - Dim(1));
    }
    sum = sum + term;
  }
  return sum;
}

bool IndexAlgebra::below(const Poly& p, const Dim& divisor) const {
  auto max = maximum(p);
  return max && (divisor - *max).lower_bound() >= 1;
}

std::optional<Dim> IndexAlgebra::limit(Val value) {
  if (value->op == Op::kSMin || value->op == Op::kUMin) {
    // Of two limits the one that is a dimension or a constant is what indices are divided by.
    auto is_leaf = [](Val v) { return v->op == Op::kConst || v->op == Op::kDimArg; };
    auto a = limit(value->args[is_leaf(value->args[0]) ? 0 : 1]);
    return a ? a : limit(value->args[is_leaf(value->args[0]) ? 1 : 0]);
  }
  const Poly& p = poly(value);
  if (p.empty()) return Dim(0);
  if (p.size() == 1 && p.begin()->first.empty()) return p.begin()->second;
  return maximum(p);
}

void IndexAlgebra::set_bound(Val value, const Dim& bound) {
  bounds_.insert_or_assign(value, bound);
}

void IndexAlgebra::set_loop_range(Val var, Val lo, Val hi) {
  if (!maximum(poly(lo))) return;
  if (auto bound = limit(hi)) set_bound(var, *bound);
}

Val IndexAlgebra::build(const Poly& p) {
  // Outer terms first, so that their sum is computed outside the inner loops.
  std::vector<std::pair<int, Val>> terms;
  for (const auto& [product, coefficient] : p) {
    Val term = nullptr;
    for (Val atom : product) term = term == nullptr ? atom : builder_.mul(term, atom);
    Val factor = builder_.dim(coefficient);
    term = term == nullptr ? factor : builder_.mul(term, factor);
    terms.emplace_back(builder_.depth_of(term), term);
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Val sum = nullptr;
  for (const auto& [depth, term] : terms) sum = sum == nullptr ? term : builder_.add(sum, term);
  return sum == nullptr ? builder_.i64(0) : sum;
}

Val IndexAlgebra::safe_divisor(const Dim& divisor) {
  Val value = builder_.dim(divisor);
  return divisor.lower_bound() >= 1 ? value : builder_.binary(Op::kUMax, value, builder_.i64(1));
}

Val IndexAlgebra::divide(const Poly& p, const Dim& divisor, Val original) {
  if (divisor == Dim(1)) return original != nullptr ? original : build(p);
  Poly whole, rest;
  split(p, divisor, whole, rest);
  if (rest.empty() || below(rest, divisor)) return build(whole);
  if (!whole.empty() && maximum(rest))
    return builder_.add(build(whole), divide(rest, divisor, nullptr));
  // (g*x + r) / (g*d) is x / d when 0 <= r < g.
  for (auto it = p.rbegin(); it != p.rend(); ++it) {
    const Dim& g = it->second;
    if (g == Dim(1) || g.lower_bound() < 1) continue;
    auto reduced = exact_quotient(divisor, g);
    if (!reduced) continue;
    Poly multiple, small;
    split(p, g, multiple, small);
    if (small.empty() || below(small, g)) return divide(multiple, *reduced, nullptr);
  }
  // (x / c) / d is x / (c*d).
  if (p.size() == 1 && p.begin()->first.size() == 1 && p.begin()->second == Dim(1)) {
    Val atom = p.begin()->first[0];
    if (int64_t inner = constant_divisor(*atom); inner > 0)
      return div(atom->args[0], divisor * Dim(inner));
  }
  Val value = original != nullptr ? original : build(p);
  Val quotient = builder_.binary(Op::kUDiv, value, safe_divisor(divisor));
  auto max = maximum(p);
  if (max && divisor.lower_bound() >= 1) set_bound(quotient, floor_div(*max, divisor) + Dim(1));
  return quotient;
}

Val IndexAlgebra::remainder(const Poly& p, const Dim& divisor, Val original) {
  if (divisor == Dim(1)) return builder_.i64(0);
  Poly whole, rest;
  split(p, divisor, whole, rest);
  if (rest.empty()) return builder_.i64(0);
  if (below(rest, divisor)) return build(rest);
  if (!whole.empty() && maximum(rest)) return remainder(rest, divisor, nullptr);
  // (g*x + r) % (g*d) is g*(x % d) + r when 0 <= r < g.
  for (auto it = p.rbegin(); it != p.rend(); ++it) {
    const Dim& g = it->second;
    if (g == Dim(1) || g.lower_bound() < 1) continue;
    auto reduced = exact_quotient(divisor, g);
    if (!reduced) continue;
    Poly multiple, small;
    split(p, g, multiple, small);
    if (!small.empty() && !below(small, g)) continue;
    Val part = builder_.mul(remainder(multiple, *reduced, nullptr), builder_.dim(g));
    return builder_.add(part, build(small));
  }
  Val value = original != nullptr ? original : build(p);
  Val result = builder_.binary(Op::kURem, value, safe_divisor(divisor));
  set_bound(result, dim_max(divisor, Dim(1)));
  return result;
}

Val IndexAlgebra::div(Val a, const Dim& divisor) {
  if (divisor.is_static() && divisor.value() <= 1) return a;
  const Poly p = poly(a);
  return divide(p, divisor, a);
}

Val IndexAlgebra::rem(Val a, const Dim& divisor) {
  if (divisor.is_static() && divisor.value() <= 1) return builder_.i64(0);
  const Poly p = poly(a);
  return remainder(p, divisor, a);
}

}  // namespace tenon::kir
