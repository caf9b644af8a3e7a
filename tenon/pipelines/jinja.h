// A subset of the Jinja template language, enough for the chat templates of models:
//
//   {{ expression }}, {# comment #}, {% if %}/elif/else, {% for x in list %}/else, {% set x = … %}
//   and
//   {% set ns.x = … %}, minus signs that strip white space, and the line rules of trim_blocks and
//   lstrip_blocks; literals, lists, mappings, attributes, indices and slices; or, and, not,
//   comparisons, in, + - * / // % ~, a if c else b; tests defined, undefined, none, string, number,
//   boolean, mapping, sequence, iterable, true, false; filters trim, length, count, upper, lower,
//   capitalize, first, last, join, default, string, int, replace, safe, tojson; the string methods
//   strip, lstrip, rstrip, startswith, endswith, split, upper, lower, replace; the functions
//   namespace, range, raise_exception; loop.index, index0, first, last, length.
//
// Anything else is refused when the template is parsed. Rendering is bounded in steps and output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::pipelines::jinja {

struct Value;
using List = std::vector<Value>;

// Ordered as written.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  bool is_namespace = false;  // made by namespace(): its items can be set
  const Value* find(std::string_view key) const;
  void set(std::string_view key, Value value);
};

struct Undefined {};
struct None {};

struct Value {
  std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<const List>,
               std::shared_ptr<Dict>>
      data;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  const std::string* string() const { return as<std::string>(); }
  const List* list() const {
    auto p = as<std::shared_ptr<const List>>();
    return p ? p->get() : nullptr;
  }
  Dict* dict() const {
    auto p = as<std::shared_ptr<Dict>>();
    return p ? p->get() : nullptr;
  }
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool truthy() const;
  // As {{ }} prints it.
  std::string text() const;
  std::string json() const;
  bool operator==(const Value& other) const;
  static Value of(List list) { return {std::make_shared<const List>(std::move(list))}; }
  static Value of(Dict dict) { return {std::make_shared<Dict>(std::move(dict))}; }
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

enum class NodeKind {
  kText,       // text
  kPrint,      // children[0]
  kIf,         // children: condition, body, condition, body, …, [else body]
  kFor,        // text: the name; children: list, body, else body
  kSet,        // text: the name, name2: the attribute; children[0]
  kBlock,      // children in order
  kConstant,   // value
  kName,       // text
  kIndex,      // children[0] [ children[1] ]; attributes too
  kSlice,      // children: object, from, to (null: open)
  kList,       // children
  kDict,       // children: key, value, …
  kUnary,      // text: "-", "not"
  kBinary,     // text: the operator
  kCondition,  // children: then, if, else (null: nothing)
  kTest,       // text: the name; children[0]
  kFilter,     // text: the name; children: value, arguments
  kMethod,     // text: the name; children: object, arguments
  kCall,       // text: the function; children: arguments, names: of keyword arguments
};

struct Node {
  NodeKind kind;
  int line = 1;
  std::string text;
  std::string name2;
  Value value;
  std::vector<NodePtr> children;
  std::vector<std::string> names;
};

// Raises FormatError for wrong syntax and UnsupportedError for what is outside the subset, both
// naming the line.
NodePtr parse(std::string_view source);
// Raises ValueError for an operation on values that do not fit it, what raise_exception says, and
// for a template that takes too long.
std::string render(const Node& root, const Dict& variables);

}  // namespace tenon::pipelines::jinja
