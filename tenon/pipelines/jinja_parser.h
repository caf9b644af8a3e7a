// The parser of templates: text and tags in jinja_parse.cpp, expressions by precedence climbing in
// jinja_parse_expression.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/pipelines/jinja.h"

namespace tenon::pipelines::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source) : text_(source) {}

  NodePtr parse();

 private:
  static constexpr int kMaxDepth = 100;

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void unsupported(std::string_view what, std::string_view name) const;
  int line() const;
  std::shared_ptr<Node> node(NodeKind kind, std::string text = "",
                             std::vector<NodePtr> children = {}) const;

  // --- text and tags ---
  // The text up to the next tag, after the rules for white space around tags.
  std::string plain();
  // A newline dropped by trim_newline_ also begins a line.
  bool trimmed(size_t at) const;
  void open();
  void close(std::string_view end);
  void comment();
  // Nodes up to a tag that the caller knows (its name is then in tag_) or the end.
  NodePtr block(int depth);
  NodePtr if_tag(int depth);
  NodePtr for_tag(int depth);
  NodePtr set_tag(int depth);
  void end_tag(const char* name);

  // --- words ---
  void spaces();
  bool peek(std::string_view token);
  bool take(std::string_view token);
  bool at_word(std::string_view name);
  bool take_word(std::string_view name);
  std::string word(const char* what);

  // --- expressions ---
  NodePtr expression(int depth);
  NodePtr condition_free(int depth);
  NodePtr conjunction(int depth);
  NodePtr negation(int depth);
  NodePtr comparison(int depth);
  NodePtr sum(int depth);
  NodePtr product(int depth);
  NodePtr unary(int depth);
  // After the opening parenthesis.
  void arguments(Node& call, int depth);
  NodePtr postfix(NodePtr value, int depth);
  NodePtr subscript(const NodePtr& value, int depth);
  NodePtr primary(int depth);
  NodePtr sequence(int depth, std::string_view end, bool pairs);
  NodePtr string_literal(char quote);
  NodePtr number_literal();

  std::string_view text_;
  size_t at_ = 0;
  mutable size_t counted_ = 0;  // newlines before here make line_
  mutable int line_ = 1;
  bool strip_next_ = false;    // the last tag ended with a minus sign
  bool trim_newline_ = false;  // trim_blocks: a newline after a block goes
  std::string tag_;            // the tag that ended the last block
};

}  // namespace tenon::pipelines::jinja
