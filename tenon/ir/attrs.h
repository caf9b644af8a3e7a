// Named attributes of a node: a small sorted map from names to values of a closed set of kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/base/literal.h"

namespace tenon::ir {

struct Graph;

// Order is part of the text form: bool, int, float, string, dtype, ints, shape, literal, graph.
using Attr = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, Shape,
                          Literal, std::shared_ptr<const Graph>>;

bool equal(const Attr& a, const Attr& b);  // floats by bits; graphs by identity

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> items);

  Attrs& set(std::string name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Raises InternalError when missing or of another kind.
  template <class T>
  const T& get(std::string_view name) const {
    const Attr* attr = find(name);
    if (attr == nullptr || !std::holds_alternative<T>(*attr)) missing(name);
    return std::get<T>(*attr);
  }
  int64_t i(std::string_view name) const { return get<int64_t>(name); }
  bool b(std::string_view name) const { return get<bool>(name); }
  double f(std::string_view name) const { return get<double>(name); }
  const std::string& s(std::string_view name) const { return get<std::string>(name); }
  DType dtype(std::string_view name) const { return get<DType>(name); }
  const std::vector<int64_t>& ints(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }
  const Shape& shape(std::string_view name) const { return get<Shape>(name); }

  const std::vector<std::pair<std::string, Attr>>& items() const { return items_; }
  bool operator==(const Attrs& other) const;
  size_t hash() const;

 private:
  [[noreturn]] void missing(std::string_view name) const;
  std::vector<std::pair<std::string, Attr>> items_;  // sorted by name
};

}  // namespace tenon::ir
