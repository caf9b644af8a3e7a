// Users' structs as trees: one line after the struct registers it.
//
//   struct Params { tenon::Tensor w, b; };
//   TENON_STRUCT(Params, w, b)
//
// The line stands in the struct's namespace. Fields are walked sorted by name, so their order in
// the struct is free to change.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace tenon::program {

template <class T, class M>
struct Field {
  std::string_view name;
  M T::*member;
};

template <class T, class M>
constexpr Field<T, M> field(std::string_view name, M T::*member) {
  return {name, member};
}

template <class... Fields>
struct Record {
  static constexpr size_t kSize = sizeof...(Fields);
  std::string_view name;
  std::tuple<Fields...> fields;

  constexpr Record(std::string_view record_name, Fields... list)
      : name(record_name), fields(list...) {}

  // Positions of the fields in the order of their names.
  constexpr std::array<size_t, kSize> order() const {
    std::array<size_t, kSize> out{};
    std::array<std::string_view, kSize> names = std::apply(
        [](const auto&... f) { return std::array<std::string_view, kSize>{f.name...}; }, fields);
    for (size_t i = 0; i < kSize; ++i) {
      size_t at = i;
      for (; at > 0 && names[i] < names[out[at - 1]]; --at) out[at] = out[at - 1];
      out[at] = i;
    }
    return out;
  }
};

template <class T>
concept IsRecord = requires(const T* value) {
  tenon_record_of(value);
};

}  // namespace tenon::program

#define TENON_PARENS ()
#define TENON_EXPAND(...) TENON_EXPAND3(TENON_EXPAND3(TENON_EXPAND3(TENON_EXPAND3(__VA_ARGS__))))
#define TENON_EXPAND3(...) TENON_EXPAND2(TENON_EXPAND2(TENON_EXPAND2(TENON_EXPAND2(__VA_ARGS__))))
#define TENON_EXPAND2(...) TENON_EXPAND1(TENON_EXPAND1(TENON_EXPAND1(TENON_EXPAND1(__VA_ARGS__))))
#define TENON_EXPAND1(...) __VA_ARGS__
#define TENON_FIELD(TYPE, FIELD, ...) \
  ::tenon::program::field(#FIELD, &TYPE::FIELD) \
      __VA_OPT__(, TENON_FIELD_NEXT TENON_PARENS(TYPE, __VA_ARGS__))
#define TENON_FIELD_NEXT() TENON_FIELD
#define TENON_STRUCT(TYPE, ...) \
  [[maybe_unused]] constexpr auto tenon_record_of(const TYPE*) { \
    return ::tenon::program::Record(#TYPE, TENON_EXPAND(TENON_FIELD(TYPE, __VA_ARGS__))); \
  }
