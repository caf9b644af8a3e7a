// Results of a call as C++ values: the way back from tokens and leaves to vectors, maps, tuples and
// registered structs.
#pragma once

#include <charconv>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/program/signature.h"
#include "tenon/program/tree.h"

namespace tenon::program {

// Reads one value after another off a result's structure. Raises TypeError [result_type] naming
// the place where the structure and the C++ type differ.
class ResultReader {
 public:
  ResultReader(const Signature& signature, std::span<const runtime::Array> arrays)
      : signature_(signature), arrays_(arrays) {}

  template <class T>
  T read() {
    if constexpr (IsTensorLeaf<T>::value) {
      open(TokenKind::kTensor, type_name<T>());
      check_internal(tensor_ < arrays_.size(), "a call gives the results of its signature");
      return T(arrays_[tensor_++]);
    } else if constexpr (tree::kIsStatic<T>) {
      return read_static<T>();
    } else if constexpr (tree::kIsA<T, std::optional>) {
      return is_none() ? (skip_static(), T()) : T(read<typename T::value_type>());
    } else if constexpr (tree::kIsA<T, std::vector>) {
      uint32_t count = open(TokenKind::kSequence, type_name<T>()).count;
      T out;
      for (uint32_t i = 0; i < count; ++i) out.push_back(read<typename T::value_type>());
      return out;
    } else if constexpr (tree::kIsA<T, std::map> || tree::kIsA<T, std::unordered_map>) {
      uint32_t count = open(TokenKind::kMap, type_name<T>()).count;
      T out;
      for (uint32_t i = 0; i < count; ++i) {
        auto key = read_key<T>();
        out.emplace(std::move(key), read<typename T::mapped_type>());
      }
      return out;
    } else if constexpr (IsRecord<T>) {
      return read_record<T>(std::make_index_sequence<decltype(tenon_record_of(
                                static_cast<const T*>(nullptr)))::kSize>());
    } else {
      T out{};
      if (open(TokenKind::kTuple, type_name<T>()).count != std::tuple_size_v<T>) {
        refuse(type_name<T>());
      }
      std::apply([&](auto&... child) { ((child = read<std::decay_t<decltype(child)>>()), ...); },
                 out);
      return out;
    }
  }

 private:
  Token open(TokenKind kind, std::string_view type) {
    if (at_ >= signature_.results.size()) refuse(type);
    Token token = signature_.results.token(at_);
    if (token.kind != kind) refuse(type);
    ++at_;
    return token;
  }

  [[noreturn]] void refuse(std::string_view type) const {
    std::string is = "nothing more";
    if (at_ < signature_.results.size()) is = describe(signature_.results.token(at_));
    if (const StaticValue* value = static_here()) is = value->view().str();
    std::string route = route_of_token(signature_.results.tokens(), at_);
    throw TypeError(fmt::format("{}: result{}{}: is {}, taken as {}", signature_.function,
                                route.empty() ? "" : " ", route, is, type),
                    {.label = "result_type"});
  }

  // The static value at this place of the structure; null when something else stands there.
  const StaticValue* static_here() const {
    const Structure& results = signature_.results;
    if (at_ >= results.size() || results.token(at_).kind != TokenKind::kStatic) return nullptr;
    size_t before = 0;
    for (size_t i = 0; i < at_; ++i) before += results.token(i).kind == TokenKind::kStatic ? 1 : 0;
    return &signature_.result_statics.at(before);
  }

  bool is_none() const {
    const StaticValue* value = static_here();
    return value != nullptr && value->kind == StaticKind::kNone;
  }
  void skip_static() {
    ++at_;
    ++static_;
  }

  template <class T>
  typename T::key_type read_key() {
    using Key = typename T::key_type;
    const std::string text(open(TokenKind::kKey, type_name<T>()).text);
    if constexpr (tree::kIsText<Key>) {
      return Key(text);
    } else {
      int64_t number = 0;
      const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (wrong != std::errc() || end != text.data() + text.size() || !std::in_range<Key>(number)) {
        --at_;
        refuse(type_name<T>());
      }
      return static_cast<Key>(number);
    }
  }

  template <class T>
  T read_static() {
    size_t before = at_;
    open(TokenKind::kStatic, type_name<T>());
    const StaticValue& value = signature_.result_statics.at(static_++);
    auto need = [&](bool right) {
      if (right) return;
      at_ = before;
      refuse(type_name<T>());
    };
    if constexpr (tree::kIsText<T>) {
      need(value.kind == StaticKind::kString);
      return T(value.text);
    } else if constexpr (std::is_enum_v<T>) {
      need(value.kind == StaticKind::kEnum && value.text == type_name<T>());
      return static_cast<T>(value.bits);
    } else if constexpr (std::is_same_v<T, bool>) {
      need(value.kind == StaticKind::kBool);
      return value.bits != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      need(value.kind == StaticKind::kFloat);
      return static_cast<T>(value.as_double());
    } else if (value.kind == StaticKind::kUInt) {  // over the largest int64_t
      need(std::in_range<T>(static_cast<uint64_t>(value.bits)));
      return static_cast<T>(value.bits);
    } else {
      need(value.kind == StaticKind::kInt && std::in_range<T>(value.bits));
      return static_cast<T>(value.bits);
    }
  }

  template <class T, size_t... I>
  T read_record(std::index_sequence<I...>) {
    constexpr auto record = tenon_record_of(static_cast<const T*>(nullptr));
    constexpr auto order = record.order();
    if (open(TokenKind::kRecord, type_name<T>()).count != record.kSize) refuse(type_name<T>());
    T out{};
    auto one = [&](const auto& field) {
      if (open(TokenKind::kKey, type_name<T>()).text != field.name) refuse(type_name<T>());
      auto& member = out.*field.member;
      member = read<std::decay_t<decltype(member)>>();
    };
    (one(std::get<order[I]>(record.fields)), ...);
    return out;
  }

  const Signature& signature_;
  std::span<const runtime::Array> arrays_;
  size_t at_ = 0, tensor_ = 0, static_ = 0;
};

}  // namespace tenon::program
