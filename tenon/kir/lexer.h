// Tokens of kernel text. Internal to the layer.
#pragma once

#include <string>
#include <string_view>

namespace tenon::kir {

// Words, numbers, %values, "dimensions" and single punctuation characters.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const std::string& peek() const { return token_; }
  bool at_end() const { return token_.empty(); }
  bool fresh_line() const { return fresh_line_; }  // the token begins a line
  std::string take();
  bool accept(std::string_view token);
  void expect(std::string_view token);

  // Raises FormatError with the line.
  [[noreturn]] void fail(std::string_view cause) const;

 private:
  void advance();
  void skip_space();
  bool starts_number(size_t at) const;
  bool continues(size_t start) const;

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  bool fresh_line_ = true;
  std::string token_;
};

}  // namespace tenon::kir
