#include "tenon/ir/lexer.h"

#include <algorithm>
#include <utility>

namespace tenon::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }

bool is_plain_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), in_name);
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd: return "the end of the text";
    case TokenKind::kString: return '"' + token.text + '"';
    case TokenKind::kValue: return value_spelling(token.text);
    case TokenKind::kSymbol: return '@' + token.text;
    default: return "'" + token.text + "'";
  }
}

}  // namespace

std::string value_spelling(const std::string& name) {
  return name.starts_with('"') ? fmt::format("%{}\"", name) : '%' + name;
}

Token Lexer::take() {
  Token token = std::move(token_);
  advance();
  return token;
}

bool Lexer::accept(std::string_view punct_or_name) {
  if (!token_.is(punct_or_name)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view punct_or_name) {
  if (!accept(punct_or_name)) expected(fmt::format("'{}'", punct_or_name));
}

Token Lexer::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) expected(what);
  return take();
}

void Lexer::expected(std::string_view what) const {
  fail_at(token_.offset, fmt::format("expected {}, found {}", what, shown(token_)));
}

void Lexer::fail_at(size_t offset, std::string_view message) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  throw FormatError(fmt::format("{}:{}: {}", line, column, message));
}

void Lexer::skip_blanks() {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++next_;
    } else if (c == '/' && at(next_ + 1, '/')) {
      next_ = std::min(text_.find('\n', next_), text_.size());
    } else {
      return;
    }
  }
}

std::string Lexer::read_while(bool (*keep)(char)) {
  const size_t begin = next_;
  while (next_ < text_.size() && keep(text_[next_])) ++next_;
  return std::string(text_.substr(begin, next_ - begin));
}

std::string Lexer::read_string() {
  const size_t begin = next_++;
  std::string out;
  while (!at(next_, '"')) {
    if (next_ >= text_.size() || text_[next_] == '\n') fail_at(begin, "the string does not end");
    char c = text_[next_++];
    if (c == '\\') {
      const char escape = next_ < text_.size() ? text_[next_] : '\0';
      const int high = hex_digit(escape);
      const int low = next_ + 1 < text_.size() ? hex_digit(text_[next_ + 1]) : -1;
      if (escape == '"' || escape == '\\') {
        c = escape;
      } else if (escape == 'n' || escape == 't') {
        c = escape == 'n' ? '\n' : '\t';
      } else if (high >= 0 && low >= 0) {
        c = static_cast<char>(high * 16 + low);
        ++next_;
      } else {
        fail_at(next_ - 1, "unknown escape in a string");
      }
      ++next_;
    }
    out += c;
  }
  ++next_;
  return out;
}

std::string Lexer::read_marked_name() {
  const size_t begin = next_++;
  std::string name;
  if (at(next_, '"')) {
    name = read_string();
    if (text_[begin] != '%' || is_plain_name(name)) return name;
    return '"' + name;
  }
  name = read_while(in_name);
  if (name.empty()) fail_at(begin, fmt::format("expected a name after '{}'", text_[begin]));
  return name;
}

void Lexer::advance() {
  skip_blanks();
  token_ = {TokenKind::kEnd, "", next_};
  if (next_ >= text_.size()) return;
  const char c = text_[next_];
  const char after = next_ + 1 < text_.size() ? text_[next_ + 1] : '\0';
  if (is_letter(c)) {
    token_.kind = TokenKind::kName;
    token_.text = read_while(in_name);
  } else if (c == '"') {
    token_.kind = TokenKind::kString;
    token_.text = read_string();
  } else if (is_digit(c) || (c == '-' && (is_digit(after) || after == 'i'))) {
    token_.kind = TokenKind::kNumber;
    if (c == '-') ++next_;
    token_.text = (c == '-' ? "-" : "") + read_while(in_name);
    const bool hex = token_.text.starts_with("0x");
    if (!hex && token_.text.back() == 'e' && (at(next_, '+') || at(next_, '-'))) {
      token_.text += text_[next_++];
      token_.text += read_while(is_digit);
    }
  } else if (c == '%' || c == '@' || c == '^') {
    token_.kind = c == '%' ? TokenKind::kValue : c == '@' ? TokenKind::kSymbol : TokenKind::kBlock;
    token_.text = read_marked_name();
  } else if (c == '-' && after == '>') {
    token_.kind = TokenKind::kPunct;
    token_.text = "->";
    next_ += 2;
  } else if (std::string_view("(){}[]<>,:=#!").find(c) != std::string_view::npos) {
    token_.kind = TokenKind::kPunct;
    token_.text = c;
    ++next_;
  } else {
    fail_at(next_, fmt::format("unexpected character '{}'", c));
  }
}

}  // namespace tenon::ir
