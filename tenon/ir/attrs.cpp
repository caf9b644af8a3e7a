#include "tenon/ir/attrs.h"

#include <algorithm>
#include <bit>

#include "tenon/base/error.h"

namespace tenon::ir {
namespace {

size_t mix(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
}

// A large constant is told apart by its type and first bytes; equal() decides.
size_t hash_literal(const Literal& literal) {
  size_t h = static_cast<size_t>(literal.dtype());
  for (int64_t dim : literal.dims()) h = mix(h, static_cast<size_t>(dim));
  const size_t bytes = std::min<size_t>(literal.bytes(), 64);
  const auto* data = reinterpret_cast<const char*>(literal.data());
  return mix(h, std::hash<std::string_view>()({data, bytes}));
}

struct HashAttr {
  size_t operator()(bool value) const { return value ? 1 : 2; }
  size_t operator()(int64_t value) const { return std::hash<int64_t>()(value); }
  size_t operator()(double value) const {
    return std::hash<uint64_t>()(std::bit_cast<uint64_t>(value));
  }
  size_t operator()(const std::string& value) const { return std::hash<std::string>()(value); }
  size_t operator()(DType value) const { return static_cast<size_t>(value); }
  size_t operator()(const std::vector<int64_t>& values) const {
    size_t h = values.size();
    for (int64_t value : values) h = mix(h, static_cast<size_t>(value));
    return h;
  }
  size_t operator()(const Shape& shape) const {
    size_t h = shape.size();
    for (const Dim& dim : shape) h = mix(h, dim.hash());
    return h;
  }
  size_t operator()(const Literal& literal) const { return hash_literal(literal); }
  size_t operator()(const std::shared_ptr<const Graph>& graph) const {
    return std::hash<const void*>()(graph.get());
  }
};

auto lower_bound(auto& items, std::string_view name) {
  return std::lower_bound(items.begin(), items.end(), name,
                          [](const auto& item, std::string_view key) { return item.first < key; });
}

}  // namespace

bool equal(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* value = std::get_if<double>(&a)) {
    return std::bit_cast<uint64_t>(*value) == std::bit_cast<uint64_t>(std::get<double>(b));
  }
  if (const auto* literal = std::get_if<Literal>(&a)) return literal->same(std::get<Literal>(b));
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Literal>) {
          return false;
        } else {
          return value == std::get<T>(b);
        }
      },
      a);
}

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

Attrs& Attrs::set(std::string name, Attr value) {
  auto it = lower_bound(items_, name);
  if (it != items_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    items_.emplace(it, std::move(name), std::move(value));
  }
  return *this;
}

const Attr* Attrs::find(std::string_view name) const {
  auto it = lower_bound(items_, name);
  return it != items_.end() && it->first == name ? &it->second : nullptr;
}

bool Attrs::operator==(const Attrs& other) const {
  return std::equal(
      items_.begin(), items_.end(), other.items_.begin(), other.items_.end(),
      [](const auto& a, const auto& b) { return a.first == b.first && equal(a.second, b.second); });
}

size_t Attrs::hash() const {
  size_t h = items_.size();
  for (const auto& [name, value] : items_) {
    h = mix(h, std::hash<std::string>()(name));
    h = mix(h, std::visit(HashAttr(), value));
  }
  return h;
}

void Attrs::missing(std::string_view name) const {
  throw InternalError(fmt::format("internal: attribute {} is missing or of another kind", name));
}

}  // namespace tenon::ir
