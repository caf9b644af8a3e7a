#include <bit>
#include <utility>

#include "tenon/ir/parser.h"

namespace tenon::ir {

GraphPtr Parser::generic_graph() {
  Graph graph;
  const Token token = lex_.expect(TokenKind::kString, "\"tn.graph\"");
  if (token.text != "tn.graph") {
    lex_.fail_at(token.offset, "expected \"tn.graph\", found \"" + token.text + '"');
  }
  for (const char* punct : {"(", ")", "<", "{"}) lex_.expect(punct);
  std::string graph_name;
  generic_properties(graph, graph_name);
  for (const char* punct : {">", "(", "{"}) lex_.expect(punct);
  if (lex_.peek().kind == TokenKind::kBlock) generic_params(graph);
  if (arg_names_.size() != graph.params.size()) {
    lex_.fail_at(token.offset, fmt::format("@{} has {} parameters and {} names", graph.name,
                                           graph.params.size(), arg_names_.size()));
  }
  graph.param_names = arg_names_;
  while (generic_statement(graph)) {
  }
  for (const char* punct : {"}", ")", ":", "(", ")", "->", "(", ")"}) lex_.expect(punct);
  GraphPtr done = finish_graph(std::move(graph), token.offset, nullptr);
  graphs_[graph_name] = done;
  return done;
}

std::vector<std::string> Parser::string_list() {
  std::vector<std::string> list;
  lex_.expect("[");
  while (!lex_.accept("]")) {
    if (!list.empty()) lex_.expect(",");
    list.push_back(lex_.expect(TokenKind::kString, "a name").text);
  }
  return list;
}

void Parser::generic_properties(Graph& graph, std::string& graph_name) {
  lex_.expect("sym_name");
  lex_.expect("=");
  const Token name = lex_.expect(TokenKind::kString, "the graph's name");
  begin_graph(graph, name);
  graph.name = name.text;
  graph_name = name.text;
  lex_.expect(",");
  lex_.expect("arg_names");
  lex_.expect("=");
  arg_names_ = string_list();
  ranges_.clear();
  if (lex_.accept(",")) {
    lex_.expect("ranges");
    lex_.expect("=");
    lex_.expect("[");
    do {
      lex_.expect("[");
      const Token symbol = lex_.expect(TokenKind::kString, "a dimension's name");
      DimRange range;
      lex_.expect(",");
      range.min = integer("the smallest size");
      lex_.expect(",");
      range.max = integer("the largest size");
      if (range.max < 0) range.max = DimRange::kInf;
      lex_.expect(",");
      range.divisor = integer("the step");
      lex_.expect("]");
      try {
        Dim(symbol.text, range);
      } catch (const Error& error) {
        lex_.fail_at(symbol.offset, error.message());
      }
      ranges_[symbol.text] = range;
    } while (lex_.accept(","));
    lex_.expect("]");
  }
  lex_.expect("}");
}

TensorType Parser::generic_type(bool* writable) {
  lex_.expect("!");
  const Token& token = lex_.peek();
  if (!token.is("tn.tensor") && !token.is("tn.buffer")) lex_.expected("tn.tensor or tn.buffer");
  const bool buffer = token.is("tn.buffer");
  if (writable != nullptr) *writable = buffer;
  lex_.take();
  TensorType type;
  lex_.expect("<");
  type.shape = shape();
  lex_.expect(",");
  type.dtype = dtype();
  lex_.expect(">");
  return type;
}

void Parser::generic_params(Graph& graph) {
  lex_.take();
  lex_.expect("(");
  while (!lex_.accept(")")) {
    if (!graph.params.empty()) lex_.expect(",");
    Token name = lex_.expect(TokenKind::kValue, "a parameter");
    lex_.expect(":");
    bool writable = false;
    TensorType type = generic_type(&writable);
    LocationPtr place = location();
    const size_t i = graph.params.size();
    const std::string& shown = i < arg_names_.size() ? arg_names_[i] : name.text;
    const Value value = make_parameter(std::move(type), shown, std::move(place));
    define(name.offset, name.text, value);
    graph.params.push_back(value);
    graph.writable.push_back(writable);
  }
  lex_.expect(":");
}

std::vector<Value> Parser::generic_operands() {
  std::vector<Value> list;
  lex_.expect("(");
  while (!lex_.accept(")")) {
    if (!list.empty()) lex_.expect(",");
    const Token token = lex_.expect(TokenKind::kValue, "a value");
    std::string name = token.text;
    if (lex_.accept("#")) name += fmt::format("#{}", integer("a result's number"));
    auto it = values_.find(name);
    if (it == values_.end()) {
      lex_.fail_at(token.offset, value_spelling(name) + " is not defined above");
    }
    list.push_back(it->second);
  }
  return list;
}

bool Parser::generic_statement(Graph& graph) {
  Statement s;
  s.offset = lex_.peek().offset;
  if (lex_.peek().kind == TokenKind::kValue) {
    s.name = lex_.take().text;
    s.result_count = 1;
    if (lex_.accept(":")) s.result_count = static_cast<size_t>(integer("the number of results"));
    lex_.expect("=");
  }
  const Token token = lex_.expect(TokenKind::kString, "an operation");
  s.operands = generic_operands();
  if (token.text == "tn.return") {
    if (lex_.accept("{")) {
      lex_.expect("names");
      lex_.expect("=");
      graph.result_names = string_list();
      lex_.expect("}");
    }
    graph.results = s.operands;
    generic_signature(s);
    return false;
  }
  if (token.text == "tn.update") {
    if (s.operands.size() != 2) lex_.fail_at(s.offset, "tn.update takes a buffer and a value");
    add_update(graph, s.offset, s.operands[0], s.operands[1]);
    generic_signature(s);
    return true;
  }
  const OpDef& found = op(token, token.text);
  s.attrs = attrs_of(found, &Parser::generic_attr);
  generic_signature(s);
  s.location = location();
  const std::vector<Value> results = build(found, s);
  for (size_t i = 0; i < results.size(); ++i) {
    define(s.offset, results.size() == 1 ? s.name : fmt::format("{}#{}", s.name, i), results[i]);
  }
  return true;
}

Attr Parser::generic_attr(const Attr& like) {
  Attr value;
  if (std::holds_alternative<int64_t>(like) || std::holds_alternative<double>(like)) {
    const bool real = std::holds_alternative<double>(like);
    value = readable_attr(like);
    lex_.expect(":");
    lex_.expect(real ? "f64" : "i64");
    return value;
  }
  if (std::holds_alternative<std::vector<int64_t>>(like)) {
    std::vector<int64_t> values;
    lex_.expect("array");
    lex_.expect("<");
    lex_.expect("i64");
    if (lex_.accept(":")) {
      do values.push_back(integer("an integer"));
      while (lex_.accept(","));
    }
    lex_.expect(">");
    return values;
  }
  const char* wrapper = std::holds_alternative<DType>(like)     ? "tn.dtype"
                        : std::holds_alternative<Shape>(like)   ? "tn.shape"
                        : std::holds_alternative<Literal>(like) ? "tn.literal"
                                                                : nullptr;
  if (wrapper == nullptr) return readable_attr(like);
  lex_.expect("#");
  lex_.expect(wrapper);
  lex_.expect("<");
  value = readable_attr(like);
  lex_.expect(">");
  return value;
}

// The operand types repeat what the values have; they are read and compared.
void Parser::generic_signature(Statement& s) {
  lex_.expect(":");
  lex_.expect("(");
  size_t i = 0;
  while (!lex_.accept(")")) {
    if (i > 0) lex_.expect(",");
    const size_t offset = lex_.peek().offset;
    const TensorType type = generic_type(nullptr);
    if (i < s.operands.size() && type != s.operands[i].type()) {
      lex_.fail_at(offset, fmt::format("operand {} is {}, the text says {}", i,
                                       brief(s.operands[i].type()), brief(type)));
    }
    ++i;
  }
  if (i != s.operands.size()) {
    lex_.fail_at(s.offset, fmt::format("{} operands, {} operand types", s.operands.size(), i));
  }
  lex_.expect("->");
  if (!lex_.accept("(")) {
    s.types.push_back(generic_type(nullptr));
    return;
  }
  while (!lex_.accept(")")) {
    if (!s.types.empty()) lex_.expect(",");
    s.types.push_back(generic_type(nullptr));
  }
}

}  // namespace tenon::ir
