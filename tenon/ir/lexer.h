// Tokens of the text form: MLIR's lexical rules, as far as graphs use them.
#pragma once

#include <string>
#include <string_view>

#include "tenon/base/error.h"

namespace tenon::ir {

enum class TokenKind : uint8_t {
  kEnd,
  kName,    // tn.mul, tensor, true, inf
  kString,  // "…", text without quotes and escapes
  kNumber,  // -12, 0.5, 1e-7, 0x7ff0, -inf
  kValue,   // %x, %0, %"odd name"
  kSymbol,  // @block, @"odd name"
  kBlock,   // ^bb0
  kPunct,   // one of ( ) { } [ ] < > , : = # !, or ->
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  // As spelled; names, strings and symbols without marks. A value's quoted name that could not
  // stand without quotes keeps the first one, so that %"0" is not %0.
  std::string text;
  size_t offset = 0;  // of its first character

  bool is(std::string_view punct_or_name) const {
    return (kind == TokenKind::kPunct || kind == TokenKind::kName) && text == punct_or_name;
  }
};

// A value's name as errors show it.
std::string value_spelling(const std::string& name);

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const { return token_; }
  Token take();  // the token that peek() shows
  bool accept(std::string_view punct_or_name);
  void expect(std::string_view punct_or_name);
  Token expect(TokenKind kind, std::string_view what);

  // FormatError "line:column: expected WHAT, found TOKEN".
  [[noreturn]] void expected(std::string_view what) const;
  // FormatError "line:column: MESSAGE" at `offset`.
  [[noreturn]] void fail_at(size_t offset, std::string_view message) const;

 private:
  void advance();
  void skip_blanks();
  std::string read_string();
  std::string read_marked_name();
  std::string read_while(bool (*keep)(char));
  bool at(size_t i, char c) const { return i < text_.size() && text_[i] == c; }

  std::string_view text_;
  size_t next_ = 0;
  Token token_;
};

}  // namespace tenon::ir
