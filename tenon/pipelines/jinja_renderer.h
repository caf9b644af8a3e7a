// The evaluation of a template: statements in jinja_render.cpp, expressions in
// jinja_expression.cpp, filters, methods, tests and functions in jinja_functions.cpp.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "tenon/pipelines/jinja.h"

namespace tenon::pipelines::jinja {

inline constexpr int64_t kMaxSteps = 2'000'000;
inline constexpr size_t kMaxOutput = size_t{16} << 20;

// Its characters, each as a string.
std::vector<std::string> characters(const std::string& text);

class Renderer {
 public:
  explicit Renderer(const Dict& variables) { scopes_.push_back(variables); }

  void run(const Node& n);
  std::string take() { return std::move(out_); }

 private:
  [[noreturn]] void fail(const Node& n, const std::string& what) const;

  // --- statements ---
  void step(const Node& n);
  // A bound on every string that is made bounds memory.
  Value text(const Node& n, std::string s);
  void write(const Node& n, const std::string& s);
  void run_if(const Node& n);
  void run_for(const Node& n);
  void run_set(const Node& n);
  static bool holds_namespace(const Value& v);
  Value lookup(const std::string& name) const;

  // --- expressions ---
  Value value(const Node& n);
  Value index(const Node& n, const Value& object, const Value& key);
  Value slice(const Node& n);
  Value unary(const Node& n, const Value& v);
  Value binary(const Node& n);
  bool within(const Node& n, const Value& a, const Value& b);
  static std::optional<double> number(const Value& v);
  bool ordered(const Node& n, const Value& a, const Value& b);
  Value arithmetic(const Node& n, const Value& a, const Value& b);

  // --- filters, methods, tests and functions ---
  static bool test(const std::string& name, const Value& v);
  std::vector<Value> arguments(const Node& n, size_t least, size_t most);
  std::string string_of(const Node& n, const Value& v);
  Value filter(const Node& n);
  Value replace(const Node& n, const Value& v);
  Value method(const Node& n);
  // By a separator, or by runs of white space without one.
  Value split(const Node& n, const std::string& s, const std::string& separator);
  Value call(const Node& n);

  std::vector<Dict> scopes_;
  std::string out_;
  int64_t steps_ = 0;
  size_t made_ = 0;
};

}  // namespace tenon::pipelines::jinja
