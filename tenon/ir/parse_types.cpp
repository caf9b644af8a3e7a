#include <charconv>
#include <utility>

#include "tenon/ir/literal_text.h"
#include "tenon/ir/parser.h"

namespace tenon::ir {
namespace {

constexpr int64_t kMaxSplatBytes = int64_t{1} << 32;

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

int64_t Parser::integer(std::string_view what) {
  const Token token = lex_.expect(TokenKind::kNumber, what);
  const auto value = to_integer(token.text);
  if (!value) lex_.fail_at(token.offset, fmt::format("{} is not a 64-bit integer", token.text));
  return *value;
}

double Parser::number() {
  if (lex_.peek().kind != TokenKind::kNumber && lex_.peek().kind != TokenKind::kName) {
    lex_.expected("a number");
  }
  const Token token = lex_.take();
  Literal value(DType::kF64, {});
  if (!read_element(token.text, value, 0)) {
    lex_.fail_at(token.offset, fmt::format("{} is not an f64", token.text));
  }
  return value.get_double(0);
}

DType Parser::dtype() {
  const Token token = lex_.expect(TokenKind::kName, "a dtype");
  const auto found = dtype_from_name(token.text);
  if (!found || name(*found) != token.text) {
    lex_.fail_at(token.offset, fmt::format("unknown dtype {}", token.text));
  }
  return *found;
}

Dim Parser::dim(const Token& token) {
  if (token.kind == TokenKind::kNumber) {
    const auto value = to_integer(token.text);
    if (!value || *value < 0) {
      lex_.fail_at(token.offset, fmt::format("{} is not a dimension", token.text));
    }
    return *value;
  }
  try {
    return Dim::parse(token.text, [this](std::string_view symbol) {
      auto it = ranges_.find(std::string(symbol));
      return it == ranges_.end() ? DimRange() : it->second;
    });
  } catch (const Error& error) {
    lex_.fail_at(token.offset, error.message());
  }
}

Shape Parser::shape() {
  Shape shape;
  lex_.expect("[");
  while (!lex_.accept("]")) {
    if (!shape.empty()) lex_.expect(",");
    const TokenKind kind = lex_.peek().kind;
    if (kind != TokenKind::kNumber && kind != TokenKind::kString) lex_.expected("a dimension");
    shape.push_back(dim(lex_.take()));
  }
  return shape;
}

TensorType Parser::type(bool* writable) {
  const bool buffer = lex_.peek().is("buffer");
  if (writable != nullptr) *writable = buffer;
  if (buffer && writable != nullptr) {
    lex_.expect("buffer");
  } else if (!lex_.accept("tensor")) {
    lex_.expected("a type");
  }
  TensorType type;
  lex_.expect("<");
  type.shape = shape();
  lex_.expect(",");
  type.dtype = dtype();
  lex_.expect(">");
  return type;
}

std::vector<TensorType> Parser::types() {
  std::vector<TensorType> list;
  if (!lex_.accept("(")) return {type()};
  while (!lex_.accept(")")) {
    if (!list.empty()) lex_.expect(",");
    list.push_back(type());
  }
  return list;
}

// Elements come before the type, so their tokens are kept until it is known.
Literal Parser::literal() {
  const size_t offset = lex_.peek().offset;
  if (lex_.peek().is("elided")) {
    lex_.fail_at(
        offset,
        "this constant was left out when the graph was printed: print it with full constants");
  }
  if (lex_.peek().is("digest")) {
    lex_.fail_at(offset,
                 "canonical text holds digests in place of constants and cannot be read back");
  }
  const bool splat = lex_.accept("splat");
  const bool list = !splat && lex_.accept("[");
  std::vector<Token> elements;
  auto element = [&] {
    const bool complex = lex_.accept("(");
    for (int part = 0; part < (complex ? 2 : 1); ++part) {
      if (part == 1) lex_.expect(",");
      const TokenKind kind = lex_.peek().kind;
      if (kind != TokenKind::kNumber && kind != TokenKind::kName) lex_.expected("a value");
      elements.push_back(lex_.take());
    }
    if (complex) lex_.expect(")");
  };
  if (!list) {
    element();
  } else {
    while (!lex_.accept("]")) {
      if (!elements.empty()) lex_.expect(",");
      element();
    }
  }
  lex_.expect(":");
  return literal_body(elements, splat, offset);
}

Literal Parser::literal_body(const std::vector<Token>& elements, bool splat, size_t offset) {
  TensorType found;
  if (lex_.peek().is("tensor")) {
    found = type();
  } else {
    found.dtype = dtype();
  }
  if (!is_static(found.shape)) lex_.fail_at(offset, "a constant has numbers as dimensions");
  const std::vector<int64_t> dims = static_dims(found.shape);
  const size_t parts = is_complex(found.dtype) ? 2 : 1;
  int64_t count = 0;
  try {
    count = element_count(dims);
  } catch (const Error& error) {
    lex_.fail_at(offset, error.message());
  }
  const auto given = static_cast<int64_t>(elements.size() / parts);
  if (splat ? given != 1 : given != count || elements.size() % parts != 0) {
    lex_.fail_at(offset,
                 fmt::format("{} values for the {} elements of {}", given, count, brief(found)));
  }
  if (count > kMaxSplatBytes / static_cast<int64_t>(size_of(found.dtype))) {
    lex_.fail_at(offset, fmt::format("the constant {} is over 4 GiB", brief(found)));
  }
  Literal value(found.dtype, dims);
  read_elements(elements, value, splat);
  return value;
}

void Parser::read_elements(const std::vector<Token>& elements, Literal& value, bool splat) {
  const int parts = is_complex(value.dtype()) ? 2 : 1;
  Literal one(value.dtype(), {});
  const size_t size = size_of(value.dtype());
  for (int64_t i = 0; i < value.count(); ++i) {
    if (i == 0 || !splat) {
      for (int part = 0; part < parts; ++part) {
        const Token& token = elements[static_cast<size_t>(i) * parts + part];
        if (!read_element(token.text, one, 0, part)) {
          lex_.fail_at(token.offset,
                       fmt::format("{} is not a value of {}", token.text, name(value.dtype())));
        }
      }
    }
    std::memcpy(value.mutable_data() + static_cast<size_t>(i) * size, one.data(), size);
  }
}

LocationPtr Parser::location() {
  if (!lex_.accept("loc")) return nullptr;
  Location found;
  lex_.expect("(");
  std::string text = lex_.expect(TokenKind::kString, "a file or a layer").text;
  bool nested = false;
  if (lex_.accept("(")) {
    nested = true;
    found.layer = std::move(text);
    text = lex_.expect(TokenKind::kString, "a file").text;
  }
  if (lex_.accept(":")) {
    found.file = std::move(text);
    found.line = static_cast<int>(integer("a line"));
    lex_.expect(":");
    found.column = static_cast<int>(integer("a column"));
  } else if (nested) {
    lex_.expected("':'");
  } else {
    found.layer = std::move(text);
  }
  if (nested) lex_.expect(")");
  lex_.expect(")");
  return std::make_shared<Location>(std::move(found));
}

Attrs Parser::attrs_of(const OpDef& op, Attr (Parser::*read_value)(const Attr& like)) {
  Attrs attrs;
  if (!lex_.accept("{")) return attrs;
  while (!lex_.accept("}")) {
    if (!attrs.items().empty()) lex_.expect(",");
    const Token key = lex_.expect(TokenKind::kName, "an attribute");
    const AttrSpec* found = nullptr;
    for (const AttrSpec& spec : op.attrs) {
      if (spec.name == key.text) found = &spec;
    }
    if (found == nullptr) {
      lex_.fail_at(key.offset, fmt::format("tn.{} has no attribute {}", op.name, key.text));
    }
    if (attrs.has(key.text)) {
      lex_.fail_at(key.offset, fmt::format("the attribute {} is given twice", key.text));
    }
    lex_.expect("=");
    attrs.set(key.text, (this->*read_value)(found->default_value));
  }
  return attrs;
}

Attr Parser::readable_attr(const Attr& like) {
  if (std::holds_alternative<bool>(like)) {
    if (lex_.accept("true")) return true;
    if (lex_.accept("false")) return false;
    lex_.expected("true or false");
  }
  if (std::holds_alternative<int64_t>(like)) return integer("an integer");
  if (std::holds_alternative<double>(like)) return number();
  if (std::holds_alternative<std::string>(like)) {
    return lex_.expect(TokenKind::kString, "a string").text;
  }
  if (std::holds_alternative<DType>(like)) return dtype();
  if (std::holds_alternative<std::vector<int64_t>>(like)) {
    std::vector<int64_t> values;
    lex_.expect("[");
    while (!lex_.accept("]")) {
      if (!values.empty()) lex_.expect(",");
      values.push_back(integer("an integer"));
    }
    return values;
  }
  if (std::holds_alternative<Shape>(like)) return shape();
  if (std::holds_alternative<Literal>(like)) return literal();
  return callee(lex_.expect(TokenKind::kSymbol, "a graph"));
}

}  // namespace tenon::ir
