// What a call brings: its arguments flattened into a structure and leaves, without copying and
// without building a string. tree.h produces it from C++ values; signature.h compares it with what
// a program was compiled for.
//
// The structure is a list of tokens in the order in which the values are walked:
//   (x, Params{w, b}, gain = 2.0)  →  arguments 2 · tensor · record 2 "Params" · key "b" · tensor ·
//                                     key "w" · tensor · key "gain" · static
// A container's token is followed by its children; the children of maps and records, and keyword
// arguments, have a key token before each. Map keys and keywords are walked sorted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/base/dtype.h"
#include "tenon/runtime/array.h"

namespace tenon::program {

// A value that is not a tensor: baked into the program and compared exactly. 1, 1.0 and true are
// three different statics; floats are compared by their bits.
enum class StaticKind : uint8_t { kNone, kBool, kInt, kUInt, kFloat, kString, kEnum };

struct TENON_API StaticView {
  StaticKind kind = StaticKind::kNone;
  int64_t bits = 0;  // the value; kFloat: the bits of a double; kUInt: above INT64_MAX only
  std::string_view text = {};  // kString: the value; kEnum: the enum type's name

  static StaticView none() { return {}; }
  static StaticView of(bool value) { return {StaticKind::kBool, value, {}}; }
  static StaticView of(int64_t value) { return {StaticKind::kInt, value, {}}; }
  static StaticView of(uint64_t value);
  static StaticView of(double value);
  static StaticView of(std::string_view value) { return {StaticKind::kString, 0, value}; }
  static StaticView of_enum(std::string_view type, int64_t value) {
    return {StaticKind::kEnum, value, type};
  }
  bool operator==(const StaticView&) const = default;
  // As errors and signatures spell it: none, true, 1, 1.0, "text", Mode(2).
  std::string str() const;
};

// A static value that owns its text.
struct TENON_API StaticValue {
  StaticKind kind = StaticKind::kNone;
  int64_t bits = 0;
  std::string text = {};

  StaticValue() = default;
  explicit StaticValue(const StaticView& view)
      : kind(view.kind), bits(view.bits), text(view.text) {}
  StaticView view() const { return {kind, bits, text}; }
  double as_double() const;
  bool operator==(const StaticValue&) const = default;
};

enum class TokenKind : uint8_t {
  kArguments,  // `count`: positional arguments; keyword arguments follow, each after its key
  kSequence,   // a list or vector of `count`
  kTuple,      // a tuple, pair or array of `count`
  kMap,        // `count` keys
  kRecord,     // a user's struct of `count` fields; `text`: its registered name
  kKey,        // `text`: the key, field or keyword of the next child
  kTensor,     // a tensor leaf
  kStatic,     // a static leaf
};

struct Token {
  TokenKind kind;
  uint32_t count = 0;
  std::string_view text = {};
  bool operator==(const Token&) const = default;
};

// One leaf, in the order of the kTensor and kStatic tokens.
struct Leaf {
  const runtime::Array* array = nullptr;  // the value of a tensor leaf
  StaticView value = {};                  // the value of a static leaf
  // For a tensor slot's error: the name of the C++ type that stands here ("float", "TensorLayout").
  // Empty for tensors.
  std::string_view type = {};
};

// A flattened call. Everything in it points into the caller's values. Reused between calls, it
// allocates nothing.
struct Leaves {
  std::vector<Token> tokens;
  std::vector<Leaf> leaves;

  void clear() {
    tokens.clear();
    leaves.clear();
  }
  void open(TokenKind kind, size_t count, std::string_view name = {}) {
    tokens.push_back({kind, static_cast<uint32_t>(count), name});
  }
  void key(std::string_view name) { tokens.push_back({TokenKind::kKey, 0, name}); }
  void tensor(const runtime::Array& array) {
    tokens.push_back({TokenKind::kTensor});
    leaves.push_back({&array, {}, {}});
  }
  void fixed(StaticView value, std::string_view type = {}) {
    tokens.push_back({TokenKind::kStatic});
    leaves.push_back({nullptr, value, type});
  }
};

// A structure that owns its texts: the part of a signature that does not change.
class TENON_API Structure {
 public:
  Structure() = default;
  explicit Structure(const std::vector<Token>& tokens);
  // Raises ValueError when the tokens are no well-formed tree (an artifact may hold anything).
  static Structure checked(const std::vector<Token>& tokens);

  size_t size() const { return items_.size(); }
  Token token(size_t i) const { return {items_[i].kind, items_[i].count, texts_[i]}; }
  bool matches(const std::vector<Token>& tokens) const;
  // The route of each leaf, in order: "0", "1.lo", "gain". `names` gives the names of positional
  // arguments; those without one are numbers.
  std::vector<std::string> routes(const std::vector<std::string>& names = {}) const;
  std::vector<Token> tokens() const;  // pointing into this structure
  size_t count(TokenKind kind) const;
  bool operator==(const Structure&) const = default;

 private:
  struct Item {
    TokenKind kind;
    uint32_t count;
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> items_;
  std::vector<std::string> texts_;
};

// The routes of the leaves of a token list.
std::vector<std::string> routes(const std::vector<Token>& tokens,
                                const std::vector<std::string>& names = {});
// The route of the value at token `index` (of a key: of the value before it).
TENON_API std::string route_of_token(const std::vector<Token>& tokens, size_t index,
                                     const std::vector<std::string>& names = {});
// "a list of 3", "Params with 2 fields", "a tensor": for errors.
TENON_API std::string describe(const Token& token);

}  // namespace tenon::program
