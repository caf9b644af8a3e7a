// The text form of dimensions, written and read. Precedence is Python's: unary minus, then * // %
// from left to right, then + and -.
#include <charconv>

#include "tenon/base/dim_expr.h"
#include "tenon/base/error.h"

namespace tenon {
namespace {

bool is_single_factor(const Dim& dim) {
  auto terms = DimAlgebra::terms(dim);
  return terms.size() == 1 && terms[0].coef == 1 && terms[0].factors.size() == 1 &&
         DimAlgebra::constant(dim) == 0;
}

bool is_binary(const Atom& atom) {
  return atom.kind == AtomKind::kFloorDiv || atom.kind == AtomKind::kMod;
}

// An operand of // or %: parenthesised unless it is a number, a name or a call.
std::string operand(const Dim& dim) {
  bool bare = dim.is_static()
                  ? dim.value() >= 0
                  : is_single_factor(dim) && !is_binary(*DimAlgebra::terms(dim)[0].factors[0]);
  return bare ? dim.str() : "(" + dim.str() + ")";
}

std::string text(const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::kSymbol: return atom.name;
    case AtomKind::kFloorDiv: return operand(atom.args[0]) + "//" + operand(atom.args[1]);
    case AtomKind::kMod: return operand(atom.args[0]) + "%" + operand(atom.args[1]);
    default: break;
  }
  std::string out = atom.kind == AtomKind::kMax ? "max(" : "min(";
  for (size_t i = 0; i < atom.args.size(); ++i) out += (i ? ", " : "") + atom.args[i].str();
  return out + ")";
}

// The term without its sign.
std::string text(const DimTerm& term) {
  uint64_t magnitude =
      term.coef < 0 ? 0 - static_cast<uint64_t>(term.coef) : static_cast<uint64_t>(term.coef);
  bool alone = magnitude == 1 && term.factors.size() == 1;
  std::string out = magnitude == 1 ? "" : fmt::format("{}", magnitude);
  for (const AtomPtr& atom : term.factors) {
    if (!out.empty()) out += "*";
    bool wrap = is_binary(*atom) && !alone;
    out += wrap ? "(" + text(*atom) + ")" : text(*atom);
  }
  return out;
}

class Parser {
 public:
  Parser(std::string_view text, const Dim::Ranges& ranges) : text_(text), ranges_(ranges) {}

  Dim parse() {
    Dim out = sum(0);
    skip_spaces();
    if (at_ < text_.size()) fail("unexpected text");
    return out;
  }

 private:
  static constexpr int kMaxDepth = 200;

  [[noreturn]] void fail(const char* what) const {
    throw ValueError(fmt::format("dim: \"{}\": {} at column {}", text_, what, at_ + 1),
                     {.label = "dim_parse"});
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token, const char* what) {
    if (!take(token)) fail(what);
  }

  Dim sum(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    Dim out = product(depth);
    for (;;) {
      if (take("+")) {
        out = out + product(depth);
      } else if (take("-")) {
        out = out - product(depth);
      } else {
        return out;
      }
    }
  }

  Dim product(int depth) {
    Dim out = unary(depth);
    for (;;) {
      if (take("*")) {
        out = out * unary(depth);
      } else if (take("//")) {
        out = floor_div(out, unary(depth));
      } else if (take("%")) {
        out = mod(out, unary(depth));
      } else {
        return out;
      }
    }
  }

  // The sign binds before *, // and %: -n//4 is (-n)//4, as in Python.
  Dim unary(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    if (take("-")) {
      skip_spaces();
      if (at_ < text_.size() && is_digit(text_[at_])) return number(true);
      return Dim(-1) * unary(depth + 1);
    }
    return primary(depth);
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  Dim number(bool negative) {
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    std::string digits = (negative ? "-" : "") + std::string(text_.substr(at_, end - at_));
    int64_t value = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size()) fail("not a 64-bit number");
    at_ = end;
    return Dim(value);
  }

  Dim primary(int depth) {
    skip_spaces();
    if (take("(")) {
      Dim out = sum(depth + 1);
      expect(")", "expected )");
      return out;
    }
    if (at_ >= text_.size()) fail("expected a number or a name");
    if (is_digit(text_[at_])) return number(false);
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_) fail("expected a number or a name");
    std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    if ((word == "max" || word == "min") && take("(")) return call(word == "max", depth);
    return Dim(word, ranges_ ? ranges_(word) : DimRange{});
  }

  Dim call(bool is_max, int depth) {
    Dim out = sum(depth + 1);
    expect(",", "expected ,");
    do {
      Dim next = sum(depth + 1);
      out = is_max ? dim_max(out, next) : dim_min(out, next);
    } while (take(","));
    expect(")", "expected )");
    return out;
  }

  std::string_view text_;
  const Dim::Ranges& ranges_;
  size_t at_ = 0;
};

}  // namespace

std::string Dim::str() const {
  if (!expr_) return fmt::format("{}", value_);
  std::string out;
  for (const DimTerm& term : expr_->terms) {
    bool negative = term.coef < 0;
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    // A leading minus binds before // and %, so the quotient it negates is put in parentheses.
    bool wrap =
        out == "-" && term.coef == -1 && term.factors.size() == 1 && is_binary(*term.factors[0]);
    out += wrap ? "(" + text(term) + ")" : text(term);
  }
  if (expr_->constant > 0) out += fmt::format(" + {}", expr_->constant);
  if (expr_->constant < 0) {
    out += fmt::format(" - {}", 0 - static_cast<uint64_t>(expr_->constant));
  }
  return out;
}

Dim Dim::parse(std::string_view text, const Ranges& ranges) { return Parser(text, ranges).parse(); }

std::string str(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i) out += ", ";
    out += shape[i].is_static() ? shape[i].str() : "\"" + shape[i].str() + "\"";
  }
  return out + "]";
}

}  // namespace tenon
