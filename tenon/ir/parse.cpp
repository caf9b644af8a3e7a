#include <algorithm>
#include <utility>

#include "tenon/ir/parser.h"
#include "tenon/ir/text.h"

namespace tenon::ir {

GraphPtr Parser::module() {
  GraphPtr last;
  if (lex_.peek().kind == TokenKind::kString) {
    const Token token = lex_.take();
    if (token.text != "tn.module") {
      lex_.fail_at(token.offset, "expected \"tn.module\", found \"" + token.text + '"');
    }
    for (const char* punct : {"(", ")", "(", "{"}) lex_.expect(punct);
    while (!lex_.accept("}")) last = generic_graph();
    for (const char* punct : {")", ":", "(", ")", "->", "(", ")"}) lex_.expect(punct);
  } else {
    lex_.expect("tn.module");
    lex_.expect("{");
    while (!lex_.accept("}")) last = readable_graph();
  }
  if (lex_.peek().kind != TokenKind::kEnd) lex_.expected("the end of the text");
  if (last == nullptr) lex_.fail_at(0, "the module holds no graph");
  return last;
}

// --- graphs ---

void Parser::begin_graph(Graph& graph, const Token& name) {
  values_.clear();
  params_.clear();
  graph.name = name.text;
  if (graphs_.count(name.text) != 0) {
    lex_.fail_at(name.offset, fmt::format("a graph @{} stands above", name.text));
  }
}

void Parser::add_param(Graph& graph, const Token& name, bool writable, TensorType type,
                       LocationPtr location) {
  std::string text = name.text;
  if (text.front() == '"') text.erase(0, 1);
  const Value value = make_parameter(std::move(type), text, std::move(location));
  define(name.offset, name.text, value);
  params_[name.text] = graph.params.size();
  graph.params.push_back(value);
  graph.param_names.push_back(std::move(text));
  graph.writable.push_back(writable);
}

void Parser::add_update(Graph& graph, size_t offset, const Value& target, const Value& value) {
  auto it = std::find(graph.params.begin(), graph.params.end(), target);
  const auto param = static_cast<uint32_t>(it - graph.params.begin());
  if (it == graph.params.end() || !graph.writable[param]) {
    lex_.fail_at(offset, "tn.update writes a buffer parameter");
  }
  if (value.type() != target.type()) {
    lex_.fail_at(offset, fmt::format("the buffer is {}, the value {}", brief(target.type()),
                                     brief(value.type())));
  }
  for (const Update& update : graph.updates) {
    if (update.param == param) lex_.fail_at(offset, "this buffer is updated above");
  }
  graph.updates.push_back({param, value});
}

GraphPtr Parser::finish_graph(Graph graph, size_t offset, const std::vector<TensorType>* types) {
  std::sort(graph.updates.begin(), graph.updates.end(),
            [](const Update& a, const Update& b) { return a.param < b.param; });
  if (types != nullptr) {
    if (types->size() != graph.results.size()) {
      lex_.fail_at(offset, fmt::format("@{} declares {} results and returns {}", graph.name,
                                       types->size(), graph.results.size()));
    }
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] == graph.results[i].type()) continue;
      lex_.fail_at(offset,
                   fmt::format("result {} of @{} is declared {} and returned as {}", i, graph.name,
                               brief((*types)[i]), brief(graph.results[i].type())));
    }
  }
  if (!graph.result_names.empty() && graph.result_names.size() != graph.results.size()) {
    lex_.fail_at(offset, fmt::format("@{} returns {} results and names {}", graph.name,
                                     graph.results.size(), graph.result_names.size()));
  }
  auto shared = std::make_shared<const Graph>(std::move(graph));
  return shared;
}

void Parser::define(size_t offset, const std::string& name, Value value) {
  if (!values_.emplace(name, std::move(value)).second) {
    lex_.fail_at(offset, value_spelling(name) + " is defined above");
  }
}

std::vector<Value> Parser::build(const OpDef& op, Statement& s) {
  NodePtr node;
  try {
    node = make_node(op, std::move(s.operands), std::move(s.attrs), s.location);
  } catch (const Error& error) {
    std::string_view message = error.message();
    if (message.starts_with("internal: ")) message.remove_prefix(10);
    const std::string& label = error.parts().label;
    lex_.fail_at(s.offset,
                 label.empty() ? std::string(message) : fmt::format("{} [{}]", message, label));
  }
  const size_t count = node->types.size();
  if (count != s.result_count) {
    lex_.fail_at(s.offset,
                 fmt::format("tn.{} has {} results, {} are named", op.name, count, s.result_count));
  }
  if (!s.types.empty() && s.types.size() != count) {
    lex_.fail_at(s.offset, fmt::format("tn.{} has {} results, {} types are given", op.name, count,
                                       s.types.size()));
  }
  std::vector<Value> results;
  for (uint32_t i = 0; i < count; ++i) {
    if (!s.types.empty() && s.types[i] != node->types[i]) {
      lex_.fail_at(s.offset, fmt::format("tn.{} gives {}, the text says {}", op.name,
                                         brief(node->types[i]), brief(s.types[i])));
    }
    results.push_back({node, i});
  }
  return results;
}

const OpDef& Parser::op(const Token& token, std::string_view name) const {
  const OpDef* found = name.starts_with("tn.") ? find_op(name.substr(3)) : nullptr;
  if (found == nullptr || found == &kParameter) {
    lex_.fail_at(token.offset, fmt::format("unknown operation {}", name));
  }
  return *found;
}

Value Parser::operand() {
  const Token token = lex_.expect(TokenKind::kValue, "a value");
  auto it = values_.find(token.text);
  if (it == values_.end()) {
    lex_.fail_at(token.offset, value_spelling(token.text) + " is not defined above");
  }
  return it->second;
}

std::vector<Value> Parser::operands() {
  std::vector<Value> list;
  if (lex_.peek().kind != TokenKind::kValue) return list;
  do list.push_back(operand());
  while (lex_.accept(","));
  return list;
}

GraphPtr Parser::callee(const Token& token) const {
  auto it = graphs_.find(token.text);
  if (it == graphs_.end()) {
    lex_.fail_at(token.offset, fmt::format("no graph @{} stands above", token.text));
  }
  return it->second;
}

// --- the readable form ---

GraphPtr Parser::readable_graph() {
  Graph graph;
  lex_.expect("tn.graph");
  const Token name = lex_.expect(TokenKind::kSymbol, "the graph's name");
  begin_graph(graph, name);
  readable_ranges();
  readable_params(graph);
  std::vector<TensorType> result_types;
  if (lex_.accept("->")) result_types = types();
  lex_.expect("{");
  while (readable_statement(graph)) {
  }
  lex_.expect("}");
  GraphPtr done = finish_graph(std::move(graph), name.offset, &result_types);
  graphs_[name.text] = done;
  return done;
}

void Parser::readable_ranges() {
  ranges_.clear();
  if (!lex_.accept("<")) return;
  do {
    const Token symbol = lex_.expect(TokenKind::kString, "a dimension's name");
    DimRange range;
    lex_.expect("in");
    lex_.expect("[");
    range.min = integer("the smallest size");
    lex_.expect(",");
    if (lex_.accept("inf")) {
      lex_.expect(")");
    } else {
      range.max = integer("the largest size or inf");
      lex_.expect("]");
    }
    if (lex_.accept("step")) range.divisor = integer("the step");
    try {
      Dim(symbol.text, range);
    } catch (const Error& error) {
      lex_.fail_at(symbol.offset, error.message());
    }
    ranges_[symbol.text] = range;
  } while (lex_.accept(","));
  lex_.expect(">");
}

void Parser::readable_params(Graph& graph) {
  lex_.expect("(");
  while (!lex_.accept(")")) {
    if (!graph.params.empty()) lex_.expect(",");
    const Token name = lex_.expect(TokenKind::kValue, "a parameter");
    lex_.expect(":");
    bool writable = false;
    TensorType found = type(&writable);
    add_param(graph, name, writable, std::move(found), location());
  }
}

bool Parser::readable_statement(Graph& graph) {
  Statement s;
  s.offset = lex_.peek().offset;
  if (lex_.accept("tn.return")) {
    readable_return(graph);
    return false;
  }
  if (lex_.accept("tn.update")) {
    readable_update(graph, s.offset);
    return true;
  }
  if (lex_.peek().kind == TokenKind::kValue) {
    do s.names.push_back(lex_.expect(TokenKind::kValue, "a result").text);
    while (lex_.accept(","));
    lex_.expect("=");
  }
  s.result_count = s.names.size();
  const Token token = lex_.expect(TokenKind::kName, "an operation");
  const OpDef& found = op(token, token.text);
  readable_op(found, s);
  s.location = location();
  const std::vector<Value> results = build(found, s);
  for (size_t i = 0; i < results.size(); ++i) define(s.offset, s.names[i], results[i]);
  return true;
}

void Parser::readable_op(const OpDef& op, Statement& s) {
  if (&op == &kConstant) {
    s.attrs.set("value", literal());
  } else if (&op == &kConstantExternal) {
    s.attrs.set("name", lex_.expect(TokenKind::kString, "the external name").text);
    s.attrs.set("relative", lex_.accept("relative"));
    lex_.expect(":");
    TensorType found = type();
    s.attrs.set("dtype", found.dtype).set("shape", std::move(found.shape));
  } else if (&op == &kCall) {
    GraphPtr body = callee(lex_.expect(TokenKind::kSymbol, "a graph"));
    lex_.expect("(");
    s.operands = operands();
    lex_.expect(")");
    s.attrs = attrs_of(op, &Parser::readable_attr);
    s.attrs.set("callee", std::move(body));
  } else {
    s.operands = operands();
    s.attrs = attrs_of(op, &Parser::readable_attr);
    if (lex_.accept(":")) s.types = types();
  }
}

void Parser::readable_update(Graph& graph, size_t offset) {
  const Value target = operand();
  lex_.expect(",");
  add_update(graph, offset, target, operand());
}

void Parser::readable_return(Graph& graph) {
  graph.results = operands();
  if (!lex_.accept("{")) return;
  lex_.expect("names");
  lex_.expect("=");
  graph.result_names = string_list();
  lex_.expect("}");
}

GraphPtr parse(std::string_view text) { return Parser(text).module(); }

}  // namespace tenon::ir
