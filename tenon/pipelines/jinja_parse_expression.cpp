// Parser of the template subset: words and expressions.
#include <algorithm>
#include <charconv>

#include "tenon/base/error.h"
#include "tenon/pipelines/jinja_parser.h"

namespace tenon::pipelines::jinja {

namespace {

constexpr std::string_view kTests[] = {"boolean", "defined", "false",    "iterable",
                                       "mapping", "none",    "number",   "sequence",
                                       "string",  "true",    "undefined"};
constexpr std::string_view kFilters[] = {"capitalize", "count",  "default", "first", "int",
                                         "join",       "last",   "length",  "lower", "replace",
                                         "safe",       "string", "tojson",  "trim",  "upper"};
constexpr std::string_view kMethods[] = {"endswith", "lower",      "lstrip", "replace", "rstrip",
                                         "split",    "startswith", "strip",  "upper"};
constexpr std::string_view kFunctions[] = {"namespace", "raise_exception", "range"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

void Parser::spaces() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

bool Parser::peek(std::string_view token) {
  spaces();
  return text_.substr(at_).starts_with(token);
}

bool Parser::take(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

bool Parser::at_word(std::string_view name) {
  return peek(name) && (at_ + name.size() >= text_.size() || !is_word(text_[at_ + name.size()]));
}

bool Parser::take_word(std::string_view name) {
  if (!at_word(name)) return false;
  at_ += name.size();
  return true;
}

std::string Parser::word(const char* what) {
  spaces();
  size_t end = at_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == at_ || is_digit(text_[at_])) fail(fmt::format("expected {}", what));
  std::string out(text_.substr(at_, end - at_));
  at_ = end;
  return out;
}

NodePtr Parser::expression(int depth) {
  if (depth > kMaxDepth) fail("nested too deeply");
  NodePtr value = condition_free(depth);
  if (!take_word("if")) return value;
  NodePtr condition = condition_free(depth);
  NodePtr otherwise = take_word("else") ? expression(depth + 1) : nullptr;
  return node(NodeKind::kCondition, "", {value, condition, otherwise});
}

NodePtr Parser::condition_free(int depth) {
  NodePtr left = conjunction(depth);
  while (take_word("or")) left = node(NodeKind::kBinary, "or", {left, conjunction(depth)});
  return left;
}

NodePtr Parser::conjunction(int depth) {
  NodePtr left = negation(depth);
  while (take_word("and")) left = node(NodeKind::kBinary, "and", {left, negation(depth)});
  return left;
}

NodePtr Parser::negation(int depth) {
  if (depth > kMaxDepth) fail("nested too deeply");
  if (take_word("not")) return node(NodeKind::kUnary, "not", {negation(depth + 1)});
  return comparison(depth);
}

NodePtr Parser::comparison(int depth) {
  NodePtr left = sum(depth);
  for (;;) {
    std::string op;
    for (const char* token : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (op.empty() && take(token)) op = token;
    }
    if (op.empty() && take_word("in")) op = "in";
    if (op.empty() && take_word("not")) {
      if (!take_word("in")) fail("expected in");
      op = "not in";
    }
    if (op.empty()) return left;
    left = node(NodeKind::kBinary, op, {left, sum(depth)});
  }
}

NodePtr Parser::sum(int depth) {
  NodePtr left = product(depth);
  for (;;) {
    const char* op = take("+") ? "+" : take("~") ? "~" : nullptr;
    // A minus before a tag's end belongs to the tag.
    if (op == nullptr && peek("-") && !peek("-%}") && !peek("-}}") && take("-")) op = "-";
    if (op == nullptr) return left;
    left = node(NodeKind::kBinary, op, {left, product(depth)});
  }
}

NodePtr Parser::product(int depth) {
  NodePtr left = unary(depth);
  for (;;) {
    if (peek("**")) unsupported("the operator", "**");
    const char* op = take("*") ? "*" : take("//") ? "//" : take("/") ? "/" : nullptr;
    if (op == nullptr && !peek("%}") && take("%")) op = "%";
    if (op == nullptr) return left;
    left = node(NodeKind::kBinary, op, {left, unary(depth)});
  }
}

NodePtr Parser::unary(int depth) {
  if (depth > kMaxDepth) fail("nested too deeply");
  if (take("-")) return node(NodeKind::kUnary, "-", {unary(depth + 1)});
  NodePtr value = postfix(primary(depth + 1), depth + 1);
  for (;;) {
    if (take("|")) {
      std::string name = word("a filter");
      if (!contains(kFilters, name)) unsupported("the filter", name);
      auto out = node(NodeKind::kFilter, name, {value});
      if (take("(")) arguments(*out, depth + 1);
      value = postfix(out, depth + 1);
    } else if (take_word("is")) {
      bool negated = take_word("not");
      std::string name = word("a test");
      if (!contains(kTests, name)) unsupported("the test", name);
      value = node(NodeKind::kTest, name, {value});
      if (negated) value = node(NodeKind::kUnary, "not", {value});
    } else {
      return value;
    }
  }
}

void Parser::arguments(Node& call, int depth) {
  if (take(")")) return;
  do {
    size_t begin = at_;
    spaces();
    std::string name;
    if (at_ < text_.size() && is_word(text_[at_]) && !is_digit(text_[at_])) {
      name = word("a name");
      spaces();
      if (!peek("=") || peek("==")) {
        name.clear();
        at_ = begin;
      } else {
        take("=");
      }
    }
    if (!name.empty() && call.text != "namespace") unsupported("the keyword argument", name);
    call.names.push_back(name);
    call.children.push_back(expression(depth));
  } while (take(","));
  if (!take(")")) fail("expected )");
}

NodePtr Parser::postfix(NodePtr value, int depth) {
  for (;;) {
    if (take(".")) {
      std::string name = word("an attribute");
      if (take("(")) {
        if (!contains(kMethods, name)) unsupported("the method", name);
        auto call = node(NodeKind::kMethod, name, {value});
        arguments(*call, depth);
        value = call;
      } else {
        auto key = node(NodeKind::kConstant);
        key->value = {name};
        value = node(NodeKind::kIndex, "", {value, key});
      }
    } else if (take("[")) {
      value = subscript(value, depth);
    } else if (value->kind == NodeKind::kName && take("(")) {
      if (!contains(kFunctions, value->text)) unsupported("the function", value->text);
      auto call = node(NodeKind::kCall, value->text);
      arguments(*call, depth);
      value = call;
    } else {
      return value;
    }
  }
}

NodePtr Parser::subscript(const NodePtr& value, int depth) {
  NodePtr from = peek(":") ? nullptr : expression(depth);
  if (take(":")) {
    NodePtr to = peek("]") || peek(":") ? nullptr : expression(depth);
    if (peek(":")) unsupported("the slice", "with a step");
    if (!take("]")) fail("expected ]");
    return node(NodeKind::kSlice, "", {value, from, to});
  }
  if (!take("]")) fail("expected ]");
  return node(NodeKind::kIndex, "", {value, from});
}

NodePtr Parser::primary(int depth) {
  if (depth > kMaxDepth) fail("nested too deeply");
  spaces();
  if (at_ >= text_.size()) fail("expected an expression");
  char c = text_[at_];
  if (c == '\'' || c == '"') return string_literal(c);
  if (is_digit(c)) return number_literal();
  if (take("(")) {
    NodePtr out = expression(depth);
    if (!take(")")) fail("expected )");
    return out;
  }
  if (take("[")) return sequence(depth, "]", false);
  if (take("{")) return sequence(depth, "}", true);
  std::string name = word("an expression");
  auto constant = node(NodeKind::kConstant);
  if (name == "true" || name == "True") {
    constant->value = {true};
  } else if (name == "false" || name == "False") {
    constant->value = {false};
  } else if (name == "none" || name == "None") {
    constant->value = {None{}};
  } else {
    return node(NodeKind::kName, name);
  }
  return constant;
}

NodePtr Parser::sequence(int depth, std::string_view end, bool pairs) {
  auto out = node(pairs ? NodeKind::kDict : NodeKind::kList);
  while (!take(end)) {
    if (!out->children.empty() && !take(",")) fail(fmt::format("expected {}", end));
    if (take(end)) break;
    out->children.push_back(expression(depth));
    if (!pairs) continue;
    if (!take(":")) fail("expected :");
    out->children.push_back(expression(depth));
  }
  return out;
}

NodePtr Parser::string_literal(char quote) {
  std::string out;
  for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
    if (text_[at_] != '\\' || at_ + 1 >= text_.size()) {
      out += text_[at_];
      continue;
    }
    switch (char c = text_[++at_]; c) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case '\\':
      case '\'':
      case '"': out += c; break;
      default: unsupported("the escape", std::string("\\") + c);
    }
  }
  if (at_ >= text_.size()) fail("a string does not end");
  ++at_;
  auto constant = node(NodeKind::kConstant);
  constant->value = {std::move(out)};
  return constant;
}

NodePtr Parser::number_literal() {
  size_t end = at_;
  while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
  std::string_view digits = text_.substr(at_, end - at_);
  auto constant = node(NodeKind::kConstant);
  int64_t whole = 0;
  double real = 0;
  const char* last = digits.data() + digits.size();
  if (auto r = std::from_chars(digits.data(), last, whole); r.ec == std::errc() && r.ptr == last) {
    constant->value = {whole};
  } else if (auto d = std::from_chars(digits.data(), last, real);
             d.ec == std::errc() && d.ptr == last) {
    constant->value = {real};
  } else {
    fail("not a number");
  }
  at_ = end;
  return constant;
}

}  // namespace tenon::pipelines::jinja
