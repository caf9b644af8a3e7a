#include "tenon/kir/lexer.h"

#include <cctype>

#include "tenon/base/error.h"

namespace tenon::kir {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%'; }

}  // namespace

std::string Lexer::take() {
  std::string token = token_;
  if (token.empty()) fail("unexpected end");
  advance();
  return token;
}

bool Lexer::accept(std::string_view token) {
  if (token_ != token) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("expected {}, got {}", token, token_));
}

void Lexer::fail(std::string_view cause) const {
  throw FormatError(fmt::format("kernel text: line {}: {}", line_, cause));
}

void Lexer::skip_space() {
  fresh_line_ = position_ == 0;
  while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) {
    if (text_[position_] == '\n') {
      ++line_;
      fresh_line_ = true;
    }
    ++position_;
  }
}

void Lexer::advance() {
  skip_space();
  const size_t start = position_;
  if (start == text_.size()) {
    token_.clear();
    return;
  }
  const char c = text_[start];
  const std::string_view two = text_.substr(start, 2);
  if (c == '"') {
    position_ = text_.find('"', start + 1);
    if (position_ == std::string_view::npos) fail("a quoted dimension does not end");
    ++position_;
  } else if (two == "->" || two == "..") {
    position_ += 2;
  } else {
    ++position_;
    if (is_word(c) || starts_number(start)) {
      while (position_ < text_.size() && continues(start)) ++position_;
    }
  }
  token_ = std::string(text_.substr(start, position_ - start));
}

bool Lexer::starts_number(size_t at) const {
  return text_[at] == '-' && at + 1 < text_.size() &&
         std::isalnum(static_cast<unsigned char>(text_[at + 1]));
}

// A point belongs to a word or number unless it begins "..", a sign follows an exponent's e.
bool Lexer::continues(size_t start) const {
  const char c = text_[position_];
  if (is_word(c)) return true;
  if (c == '.') return text_.substr(position_, 2) != "..";
  const bool number = std::isdigit(static_cast<unsigned char>(text_[start])) || text_[start] == '-';
  return number && (c == '+' || c == '-') && text_[position_ - 1] == 'e';
}

}  // namespace tenon::kir
