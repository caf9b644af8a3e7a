#include "tenon/program/leaf.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tenon/base/error.h"

namespace tenon::program {
namespace {

std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  bool marked = text.find_first_of(".en") != std::string::npos;
  return marked || !std::isfinite(value) ? text : text + ".0";
}

std::string quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}…\" ({} characters)", text.substr(0, kMost), text.size());
}

// A step of a route: `.key` for a plain name, `["key"]` for any other.
void append_key(std::string& route, std::string_view key) {
  bool plain = !key.empty() && key.find_first_of(".[]\"") == std::string_view::npos;
  if (!plain) {
    route += fmt::format("[\"{}\"]", key);
  } else {
    if (!route.empty()) route += '.';
    route += key;
  }
}

// Walks tokens and knows the route of each value.
class Walker {
 public:
  explicit Walker(const std::vector<std::string>& names) : names_(names) {}

  // True for a value (its route is then route()), false for a key.
  bool step(const Token& token) {
    while (!open_.empty() && open_.back().done()) open_.pop_back();
    if (token.kind == TokenKind::kKey) {
      key_ = token.text;
      has_key_ = true;
      return false;
    }
    if (token.kind == TokenKind::kArguments) {
      open_.push_back({token.kind, token.count, 0, ""});
      return true;
    }
    route_ = child();
    has_key_ = false;
    if (token.kind != TokenKind::kTensor && token.kind != TokenKind::kStatic) {
      open_.push_back({token.kind, token.count, 0, route_});
    }
    return true;
  }

  const std::string& route() const { return route_; }

 private:
  struct Open {
    TokenKind kind;
    uint32_t count;
    uint32_t next;
    std::string route;
    // Keyword arguments follow the positional ones, so arguments never end.
    bool done() const { return kind != TokenKind::kArguments && next >= count; }
  };

  std::string child() {
    if (open_.empty()) return "";
    Open& parent = open_.back();
    std::string route = parent.route;
    uint32_t index = parent.next++;
    if (has_key_) {
      append_key(route, key_);
    } else if (parent.kind == TokenKind::kArguments && index < names_.size() &&
               !names_[index].empty()) {
      route = names_[index];
    } else {
      append_key(route, std::to_string(index));
    }
    return route;
  }

  const std::vector<std::string>& names_;
  std::vector<Open> open_;
  std::string_view key_;
  bool has_key_ = false;
  std::string route_;
};

bool is_leaf(TokenKind kind) { return kind == TokenKind::kTensor || kind == TokenKind::kStatic; }

[[noreturn]] void malformed(size_t at, std::string_view what) {
  throw ValueError(fmt::format("structure: token {}: {}", at, what), {.label = "structure"});
}

}  // namespace

StaticView StaticView::of(uint64_t value) {
  bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return {fits ? StaticKind::kInt : StaticKind::kUInt, static_cast<int64_t>(value), {}};
}

StaticView StaticView::of(double value) {
  return {StaticKind::kFloat, std::bit_cast<int64_t>(value), {}};
}

std::string StaticView::str() const {
  switch (kind) {
    case StaticKind::kNone: return "none";
    case StaticKind::kBool: return bits != 0 ? "true" : "false";
    case StaticKind::kInt: return std::to_string(bits);
    case StaticKind::kUInt: return std::to_string(static_cast<uint64_t>(bits));
    case StaticKind::kFloat: return float_text(std::bit_cast<double>(bits));
    case StaticKind::kString: return quoted(text);
    case StaticKind::kEnum: return fmt::format("{}({})", text, bits);
  }
  return "";
}

double StaticValue::as_double() const { return std::bit_cast<double>(bits); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kArguments: return fmt::format("{} arguments", token.count);
    case TokenKind::kSequence: return fmt::format("a list of {}", token.count);
    case TokenKind::kTuple: return fmt::format("a tuple of {}", token.count);
    case TokenKind::kMap: return fmt::format("a map of {}", token.count);
    case TokenKind::kRecord: return fmt::format("{} with {} fields", token.text, token.count);
    case TokenKind::kKey: return fmt::format("key \"{}\"", token.text);
    case TokenKind::kTensor: return "a tensor";
    case TokenKind::kStatic: return "a static value";
  }
  return "";
}

Structure::Structure(const std::vector<Token>& tokens) {
  for (const Token& token : tokens) {
    items_.push_back({token.kind, token.count});
    texts_.emplace_back(token.text);
  }
}

Structure Structure::checked(const std::vector<Token>& tokens) {
  struct Open {
    TokenKind kind;
    uint32_t left;
  };
  constexpr size_t kMaxDepth = 200;
  std::vector<Open> open;
  bool key = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    while (!open.empty() && open.back().kind != TokenKind::kArguments && open.back().left == 0) {
      open.pop_back();
    }
    if (i > 0 && open.empty()) malformed(i, "stands after the end");
    bool arguments = !open.empty() && open.back().kind == TokenKind::kArguments;
    bool keyed = !open.empty() &&
                 (open.back().kind == TokenKind::kMap || open.back().kind == TokenKind::kRecord ||
                  (arguments && open.back().left == 0));
    if (token.kind == TokenKind::kKey) {
      if (!keyed || key) malformed(i, "a key stands where a value belongs");
      key = true;
      continue;
    }
    if (token.kind > TokenKind::kStatic) malformed(i, "no such kind");
    if (keyed != key) malformed(i, "a value lacks its key");
    key = false;
    if (!open.empty() && open.back().left > 0) --open.back().left;
    if (token.kind == TokenKind::kArguments && i != 0) malformed(i, "arguments inside a value");
    if (!is_leaf(token.kind)) open.push_back({token.kind, token.count});
    if (open.size() > kMaxDepth) malformed(i, "nested too deeply");
  }
  if (key) malformed(tokens.size(), "a key without a value");
  for (const Open& o : open) {
    if (o.left != 0) malformed(tokens.size(), "values are missing");
  }
  if (tokens.empty()) malformed(0, "nothing stands there");
  return Structure(tokens);
}

bool Structure::matches(const std::vector<Token>& tokens) const {
  if (tokens.size() != items_.size()) return false;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Token& other = tokens[i];
    if (items_[i].kind != other.kind || items_[i].count != other.count || texts_[i] != other.text) {
      return false;
    }
  }
  return true;
}

std::vector<Token> Structure::tokens() const {
  std::vector<Token> out;
  for (size_t i = 0; i < items_.size(); ++i) out.push_back(token(i));
  return out;
}

std::vector<std::string> Structure::routes(const std::vector<std::string>& names) const {
  return program::routes(tokens(), names);
}

size_t Structure::count(TokenKind kind) const {
  size_t n = 0;
  for (const Item& item : items_) n += item.kind == kind ? 1u : 0u;
  return n;
}

std::vector<std::string> routes(const std::vector<Token>& tokens,
                                const std::vector<std::string>& names) {
  std::vector<std::string> out;
  Walker walker(names);
  for (const Token& token : tokens) {
    if (walker.step(token) && is_leaf(token.kind)) out.push_back(walker.route());
  }
  return out;
}

std::string route_of_token(const std::vector<Token>& tokens, size_t index,
                           const std::vector<std::string>& names) {
  Walker walker(names);
  for (size_t i = 0; i <= index && i < tokens.size(); ++i) walker.step(tokens[i]);
  return walker.route();
}

}  // namespace tenon::program
