// Parser of the template subset: template text into tags, expressions by precedence climbing.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/pipelines/jinja.h"

namespace tenon::pipelines::jinja {
namespace {

constexpr int kMaxDepth = 100;

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

class Parser {
 public:
  explicit Parser(std::string_view source) : text_(source) {}

  NodePtr parse() {
    NodePtr out = block(0);
    if (!tag_.empty()) fail("unexpected " + tag_);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("chat template: line {}: {}", line(), what));
  }
  [[noreturn]] void unsupported(std::string_view what, std::string_view name) const {
    throw UnsupportedError(
        fmt::format("chat template: line {}: {} \"{}\" is not supported", line(), what, name));
  }
  int line() const {
    size_t at = std::min(at_, text_.size());
    if (at < counted_) {
      counted_ = 0;
      line_ = 1;
    }
    for (; counted_ < at; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }

  std::shared_ptr<Node> node(NodeKind kind, std::string text = "",
                             std::vector<NodePtr> children = {}) const {
    auto out = std::make_shared<Node>();
    out->kind = kind;
    out->line = line();
    out->text = std::move(text);
    out->children = std::move(children);
    return out;
  }

  // --- tags ---

  // The text up to the next tag, after the rules for white space around tags.
  std::string plain() {
    size_t end = at_;
    while (end < text_.size() &&
           !(text_[end] == '{' && end + 1 < text_.size() &&
             (text_[end + 1] == '{' || text_[end + 1] == '%' || text_[end + 1] == '#'))) {
      ++end;
    }
    std::string out(text_.substr(at_, end - at_));
    if (strip_next_) out.erase(0, std::min(out.find_first_not_of(" \t\r\n"), out.size()));
    if (trim_newline_ && !strip_next_ && !out.empty() && out[0] == '\n') out.erase(0, 1);
    if (end < text_.size()) {
      char mark = end + 2 < text_.size() ? text_[end + 2] : '\0';
      if (mark == '-') {
        out.erase(out.find_last_not_of(" \t\r\n") + 1);
      } else if (text_[end + 1] != '{' && mark != '+') {
        // lstrip_blocks: spaces between the line's begin and a block go.
        size_t last = out.find_last_not_of(" \t") + 1;
        bool line_begins =
            last > 0 ? out[last - 1] == '\n' : at_ == 0 || text_[at_ - 1] == '\n' || trimmed(at_);
        if (line_begins) out.erase(last);
      }
    }
    at_ = end;
    strip_next_ = trim_newline_ = false;
    return out;
  }
  // A newline dropped by trim_newline_ also begins a line.
  bool trimmed(size_t at) const { return trim_newline_ && at < text_.size() && text_[at] == '\n'; }

  void open() {
    at_ += 2;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
  }
  void close(std::string_view end) {
    spaces();
    if (at_ < text_.size() && text_[at_] == '-' && text_.substr(at_ + 1).starts_with(end)) {
      strip_next_ = true;
      ++at_;
    }
    if (!text_.substr(at_).starts_with(end)) fail(fmt::format("expected {}", end));
    at_ += end.size();
    trim_newline_ = end == "%}";
  }

  void comment() {
    size_t end = text_.find("#}", at_);
    if (end == text_.npos) fail("a comment does not end");
    strip_next_ = end > at_ && text_[end - 1] == '-';
    at_ = end + 2;
    trim_newline_ = true;
  }

  // Nodes up to a tag that the caller knows (its name is then in tag_) or the end.
  NodePtr block(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    auto out = node(NodeKind::kBlock);
    for (;;) {
      std::string literal = plain();
      if (!literal.empty()) out->children.push_back(node(NodeKind::kText, std::move(literal)));
      tag_.clear();
      if (at_ >= text_.size()) return out;
      char kind = text_[at_ + 1];
      if (kind == '#') {
        comment();
        continue;
      }
      open();
      if (kind == '{') {
        auto print = node(NodeKind::kPrint, "", {expression(depth + 1)});
        close("}}");
        out->children.push_back(print);
        continue;
      }
      std::string name = word("a tag's name");
      if (name == "if") {
        out->children.push_back(if_tag(depth + 1));
      } else if (name == "for") {
        out->children.push_back(for_tag(depth + 1));
      } else if (name == "set") {
        out->children.push_back(set_tag(depth + 1));
      } else if (name == "elif" || name == "else" || name == "endif" || name == "endfor") {
        tag_ = name;
        return out;
      } else {
        unsupported("the tag", name);
      }
    }
  }

  NodePtr if_tag(int depth) {
    auto out = node(NodeKind::kIf);
    do {
      out->children.push_back(expression(depth));
      close("%}");
      out->children.push_back(block(depth));
    } while (tag_ == "elif");
    if (tag_ == "else") {
      close("%}");
      out->children.push_back(block(depth));
    }
    end_tag("endif");
    return out;
  }

  NodePtr for_tag(int depth) {
    auto out = node(NodeKind::kFor, word("a name"));
    spaces();
    if (peek(",")) unsupported("the tag", "for with two names");
    if (!take_word("in")) fail("expected in");
    out->children.push_back(condition_free(depth));
    spaces();
    if (at_word("if")) unsupported("the tag", "for with if");
    close("%}");
    out->children.push_back(block(depth));
    if (tag_ == "else") {
      close("%}");
      out->children.push_back(block(depth));
    }
    end_tag("endfor");
    return out;
  }

  NodePtr set_tag(int depth) {
    auto out = node(NodeKind::kSet, word("a name"));
    if (take(".")) out->name2 = word("an attribute");
    if (!take("=")) unsupported("the tag", "set without =");
    out->children.push_back(expression(depth));
    close("%}");
    return out;
  }

  void end_tag(const char* name) {
    if (tag_ != name) fail(fmt::format("expected {}", name));
    close("%}");
    tag_.clear();
  }

  // --- expressions ---

  void spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool peek(std::string_view token) {
    spaces();
    return text_.substr(at_).starts_with(token);
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  bool at_word(std::string_view name) {
    return peek(name) && (at_ + name.size() >= text_.size() || !is_word(text_[at_ + name.size()]));
  }
  bool take_word(std::string_view name) {
    if (!at_word(name)) return false;
    at_ += name.size();
    return true;
  }
  std::string word(const char* what) {
    spaces();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_ || is_digit(text_[at_])) fail(fmt::format("expected {}", what));
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    return out;
  }

  NodePtr expression(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    NodePtr value = condition_free(depth);
    if (!take_word("if")) return value;
    NodePtr condition = condition_free(depth);
    NodePtr otherwise = take_word("else") ? expression(depth + 1) : nullptr;
    return node(NodeKind::kCondition, "", {value, condition, otherwise});
  }

  NodePtr condition_free(int depth) {
    NodePtr left = conjunction(depth);
    while (take_word("or")) left = node(NodeKind::kBinary, "or", {left, conjunction(depth)});
    return left;
  }
  NodePtr conjunction(int depth) {
    NodePtr left = negation(depth);
    while (take_word("and")) left = node(NodeKind::kBinary, "and", {left, negation(depth)});
    return left;
  }
  NodePtr negation(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    if (take_word("not")) return node(NodeKind::kUnary, "not", {negation(depth + 1)});
    return comparison(depth);
  }
  NodePtr comparison(int depth) {
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
  NodePtr sum(int depth) {
    NodePtr left = product(depth);
    for (;;) {
      const char* op = take("+") ? "+" : take("~") ? "~" : nullptr;
      // A minus before a tag's end belongs to the tag.
      if (op == nullptr && peek("-") && !peek("-%}") && !peek("-}}") && take("-")) op = "-";
      if (op == nullptr) return left;
      left = node(NodeKind::kBinary, op, {left, product(depth)});
    }
  }
  NodePtr product(int depth) {
    NodePtr left = unary(depth);
    for (;;) {
      if (peek("**")) unsupported("the operator", "**");
      const char* op = take("*") ? "*" : take("//") ? "//" : take("/") ? "/" : nullptr;
      if (op == nullptr && !peek("%}") && take("%")) op = "%";
      if (op == nullptr) return left;
      left = node(NodeKind::kBinary, op, {left, unary(depth)});
    }
  }
  NodePtr unary(int depth) {
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

  // After the opening parenthesis.
  void arguments(Node& call, int depth) {
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

  NodePtr postfix(NodePtr value, int depth) {
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

  NodePtr subscript(const NodePtr& value, int depth) {
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

  NodePtr primary(int depth) {
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

  NodePtr sequence(int depth, std::string_view end, bool pairs) {
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

  NodePtr string_literal(char quote) {
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

  NodePtr number_literal() {
    size_t end = at_;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
    std::string_view digits = text_.substr(at_, end - at_);
    auto constant = node(NodeKind::kConstant);
    int64_t whole = 0;
    double real = 0;
    const char* last = digits.data() + digits.size();
    if (auto r = std::from_chars(digits.data(), last, whole);
        r.ec == std::errc() && r.ptr == last) {
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

  std::string_view text_;
  size_t at_ = 0;
  mutable size_t counted_ = 0;  // newlines before here make line_
  mutable int line_ = 1;
  bool strip_next_ = false;    // the last tag ended with a minus sign
  bool trim_newline_ = false;  // trim_blocks: a newline after a block goes
  std::string tag_;            // the tag that ended the last block
};

}  // namespace

NodePtr parse(std::string_view source) { return Parser(source).parse(); }

}  // namespace tenon::pipelines::jinja
