// Any nesting of vectors, maps, tuples, arrays, optionals and registered structs as a tree of
// leaves. A leaf is a tensor or a static value: bool, integer, float, enum or string; nothing
// (nullopt) is a static value too.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/program/leaf.h"
#include "tenon/program/record.h"

namespace tenon::program {

// True for the types that are tensors of a call; specialised by whoever has one.
template <class T>
struct IsTensorLeaf : std::false_type {};
template <>
struct IsTensorLeaf<runtime::Array> : std::true_type {};

// How such a type stands in a call of a loaded program; specialised with IsTensorLeaf. append()
// adds its array, or what else stands there for the signature to refuse; `written` says that the
// program may update it.
template <class T>
struct TensorLeaf;
template <>
struct TensorLeaf<runtime::Array> {
  static void append(Leaves& call, const runtime::Array& leaf, bool) { call.tensor(leaf); }
};

// The text of an integer key; it lives as long as the process.
TENON_API std::string_view key_text(int64_t key);

// The name of a type as errors show it ("float", "Params"), from the compiler's own spelling.
template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr size_t begin = text.find("T = ") + 4;
  constexpr size_t end = text.find_first_of(";]", begin);
  return text.substr(begin, end - begin);
}

namespace tree {

template <class T, template <class...> class Container>
struct IsA : std::false_type {};
template <template <class...> class Container, class... Args>
struct IsA<Container<Args...>, Container> : std::true_type {};
template <class T, template <class...> class Container>
inline constexpr bool kIsA = IsA<std::remove_const_t<T>, Container>::value;
template <class T>
struct IsArray : std::false_type {};
template <class T, size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};

template <class T>
inline constexpr bool kIsText =
    std::is_convertible_v<const T&, std::string_view> && !std::is_null_pointer_v<T>;
template <class T>
inline constexpr bool kIsStatic = std::is_arithmetic_v<T> || std::is_enum_v<T> || kIsText<T>;

template <class T>
StaticView static_view(const T& value) {
  if constexpr (kIsText<T>) {
    return StaticView::of(std::string_view(value));
  } else if constexpr (std::is_enum_v<T>) {
    return StaticView::of_enum(type_name<T>(), static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return StaticView::of(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return StaticView::of(static_cast<double>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    return StaticView::of(static_cast<uint64_t>(value));
  } else {
    return StaticView::of(static_cast<int64_t>(value));
  }
}

template <class K>
std::string_view map_key(const K& key) {
  if constexpr (kIsText<K>) {
    return key;
  } else {
    return key_text(static_cast<int64_t>(key));
  }
}

}  // namespace tree

// Walks `value` in the order of leaf.h and tells `visitor`:
//   open(TokenKind, size_t count, std::string_view name), key(std::string_view),
//   tensor(T&) for a tensor leaf, fixed(StaticView, std::string_view type) for a static one.
// `value` may be const; tensor() then gets const leaves.
template <class T, class Visitor>
void walk(T& value, Visitor& visitor);

namespace tree {

template <class T, class Visitor>
void walk_map(T& map, Visitor& visitor) {
  visitor.open(TokenKind::kMap, map.size(), {});
  if constexpr (kIsA<T, std::map>) {
    for (auto& [key, child] : map) {
      visitor.key(map_key(key));
      walk(child, visitor);
    }
  } else {
    std::vector<decltype(&*map.begin())> items;
    for (auto& item : map) items.push_back(&item);
    std::sort(items.begin(), items.end(),
              [](auto* a, auto* b) { return map_key(a->first) < map_key(b->first); });
    for (auto* item : items) {
      visitor.key(map_key(item->first));
      walk(item->second, visitor);
    }
  }
}

template <class T, class Visitor, size_t... I>
void walk_record(T& value, Visitor& visitor, std::index_sequence<I...>) {
  constexpr auto record = tenon_record_of(static_cast<const std::remove_const_t<T>*>(nullptr));
  [[maybe_unused]] constexpr auto order = record.order();
  visitor.open(TokenKind::kRecord, record.kSize, record.name);
  [[maybe_unused]] const auto one = [&](const auto& field) {
    visitor.key(field.name);
    walk(value.*field.member, visitor);
  };
  (one(std::get<order[I]>(record.fields)), ...);
}

template <class T, class Visitor>
void walk_vector(T& vector, Visitor& visitor) {
  visitor.open(TokenKind::kSequence, vector.size(), {});
  if constexpr (std::is_same_v<std::remove_const_t<T>, std::vector<bool>>) {
    for (size_t i = 0; i < vector.size(); ++i) {
      visitor.fixed(StaticView::of(static_cast<bool>(vector[i])), "bool");
    }
  } else {
    for (auto& child : vector) walk(child, visitor);
  }
}

}  // namespace tree

template <class T, class Visitor>
void walk(T& value, Visitor& visitor) {
  using Plain = std::remove_const_t<T>;
  if constexpr (IsTensorLeaf<Plain>::value) {
    visitor.tensor(value);
  } else if constexpr (tree::kIsStatic<Plain>) {
    visitor.fixed(tree::static_view(value), type_name<Plain>());
  } else if constexpr (std::is_same_v<Plain, std::nullopt_t>) {
    visitor.fixed(StaticView::none(), "nullopt");
  } else if constexpr (tree::kIsA<T, std::optional>) {
    if (value.has_value()) {
      walk(*value, visitor);
    } else {
      visitor.fixed(StaticView::none(), "nullopt");
    }
  } else if constexpr (tree::kIsA<T, std::vector>) {
    tree::walk_vector(value, visitor);
  } else if constexpr (tree::kIsA<T, std::map> || tree::kIsA<T, std::unordered_map>) {
    tree::walk_map(value, visitor);
  } else if constexpr (tree::IsArray<Plain>::value) {
    visitor.open(TokenKind::kTuple, value.size(), {});
    for (auto& child : value) walk(child, visitor);
  } else if constexpr (tree::kIsA<T, std::tuple> || tree::kIsA<T, std::pair>) {
    visitor.open(TokenKind::kTuple, std::tuple_size_v<Plain>, {});
    std::apply([&](auto&... child) { (walk(child, visitor), ...); }, value);
  } else {
    static_assert(IsRecord<Plain>,
                  "not a tensor, a static value or a container of them: register the struct by "
                  "TENON_STRUCT(Name, field, …)");
    tree::walk_record(value, visitor,
                      std::make_index_sequence<decltype(tenon_record_of(
                          static_cast<const Plain*>(nullptr)))::kSize>());
  }
}

// Walks the arguments of a call.
template <class Visitor, class... Args>
void walk_arguments(Visitor& visitor, Args&... args) {
  visitor.open(TokenKind::kArguments, sizeof...(Args), {});
  (walk(args, visitor), ...);
}

}  // namespace tenon::program
