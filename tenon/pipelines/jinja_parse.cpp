// Parser of the template subset: text and tags.
#include "tenon/pipelines/jinja_parser.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::pipelines::jinja {

void Parser::fail(const std::string& what) const {
  throw FormatError(fmt::format("chat template: line {}: {}", line(), what));
}

void Parser::unsupported(std::string_view what, std::string_view name) const {
  throw UnsupportedError(
      fmt::format("chat template: line {}: {} \"{}\" is not supported", line(), what, name));
}

int Parser::line() const {
  size_t at = std::min(at_, text_.size());
  if (at < counted_) {
    counted_ = 0;
    line_ = 1;
  }
  for (; counted_ < at; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
  return line_;
}

std::shared_ptr<Node> Parser::node(NodeKind kind, std::string text,
                                   std::vector<NodePtr> children) const {
  auto out = std::make_shared<Node>();
  out->kind = kind;
  out->line = line();
  out->text = std::move(text);
  out->children = std::move(children);
  return out;
}

NodePtr Parser::parse() {
  NodePtr out = block(0);
  if (!tag_.empty()) fail("unexpected " + tag_);
  return out;
}

std::string Parser::plain() {
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

bool Parser::trimmed(size_t at) const {
  return trim_newline_ && at < text_.size() && text_[at] == '\n';
}

void Parser::open() {
  at_ += 2;
  if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
}

void Parser::close(std::string_view end) {
  spaces();
  if (at_ < text_.size() && text_[at_] == '-' && text_.substr(at_ + 1).starts_with(end)) {
    strip_next_ = true;
    ++at_;
  }
  if (!text_.substr(at_).starts_with(end)) fail(fmt::format("expected {}", end));
  at_ += end.size();
  trim_newline_ = end == "%}";
}

void Parser::comment() {
  size_t end = text_.find("#}", at_);
  if (end == text_.npos) fail("a comment does not end");
  strip_next_ = end > at_ && text_[end - 1] == '-';
  at_ = end + 2;
  trim_newline_ = true;
}

NodePtr Parser::block(int depth) {
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

NodePtr Parser::if_tag(int depth) {
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

NodePtr Parser::for_tag(int depth) {
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

NodePtr Parser::set_tag(int depth) {
  auto out = node(NodeKind::kSet, word("a name"));
  if (take(".")) out->name2 = word("an attribute");
  if (!take("=")) unsupported("the tag", "set without =");
  out->children.push_back(expression(depth));
  close("%}");
  return out;
}

void Parser::end_tag(const char* name) {
  if (tag_ != name) fail(fmt::format("expected {}", name));
  close("%}");
  tag_.clear();
}

NodePtr parse(std::string_view source) { return Parser(source).parse(); }

}  // namespace tenon::pipelines::jinja
