// The reader of both text forms. Internal: users call parse() of text.h.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/ir/lexer.h"
#include "tenon/ir/op_def.h"

namespace tenon::ir {

class Parser {
 public:
  explicit Parser(std::string_view text) : lex_(text) {}
  GraphPtr module();

 private:
  struct Statement {
    size_t offset = 0;
    std::vector<std::string> names;  // of the results, readable form
    std::string name;                // of all results, generic form
    size_t result_count = 0;
    std::vector<Value> operands;
    Attrs attrs;
    std::vector<TensorType> types;  // as written; empty: not written
    LocationPtr location;
  };

  // parse.cpp: graphs and the readable form
  GraphPtr readable_graph();
  void readable_ranges();
  void readable_params(Graph& graph);
  bool readable_statement(Graph& graph);  // false after the return
  void readable_op(const OpDef& op, Statement& s);
  void readable_update(Graph& graph, size_t offset);
  void readable_return(Graph& graph);
  void begin_graph(Graph& graph, const Token& name);
  void add_param(Graph& graph, const Token& name, bool writable, TensorType type,
                 LocationPtr location);
  void add_update(Graph& graph, size_t offset, const Value& target, const Value& value);
  GraphPtr finish_graph(Graph graph, size_t offset, const std::vector<TensorType>* types);
  void define(size_t offset, const std::string& name, Value value);
  std::vector<Value> build(const OpDef& op, Statement& s);
  const OpDef& op(const Token& token, std::string_view name) const;
  Value operand();
  std::vector<Value> operands();
  GraphPtr callee(const Token& token) const;

  // parse_generic.cpp: the generic form
  GraphPtr generic_graph();
  void generic_properties(Graph& graph, std::string& graph_name);
  void generic_params(Graph& graph);
  bool generic_statement(Graph& graph);
  std::vector<Value> generic_operands();
  Attr generic_attr(const Attr& like);
  void generic_signature(Statement& s);
  TensorType generic_type(bool* writable);
  std::vector<std::string> string_list();

  // parse_types.cpp: types, dimensions, constants, locations, attributes
  TensorType type(bool* writable = nullptr);
  std::vector<TensorType> types();
  DType dtype();
  Shape shape();
  Dim dim(const Token& token);
  int64_t integer(std::string_view what);
  Literal literal();
  Literal literal_body(const std::vector<Token>& elements, bool splat, size_t offset);
  void read_elements(const std::vector<Token>& elements, Literal& value, bool splat);
  LocationPtr location();
  // `read_value` reads one value in the form at hand.
  Attrs attrs_of(const OpDef& op, Attr (Parser::*read_value)(const Attr& like));
  Attr readable_attr(const Attr& like);
  double number();

  Lexer lex_;
  std::map<std::string, GraphPtr> graphs_;
  std::unordered_map<std::string, Value> values_;     // of the graph being read
  std::unordered_map<std::string, size_t> params_;    // name → position
  std::unordered_map<std::string, DimRange> ranges_;  // declared by the graph
  std::vector<std::string> arg_names_;                // generic form
};

}  // namespace tenon::ir
