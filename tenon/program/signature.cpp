#include "tenon/program/signature.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::program {
namespace {

std::string brief(DType dtype, const Shape& shape) {
  return std::string(tenon::name(dtype)) + tenon::str(shape);
}

// What stands in a call where a signature has a leaf.
std::string describe(const Leaf& leaf) {
  if (leaf.array == nullptr) return leaf.value.str();
  return leaf.array->valid() ? "a tensor " + leaf.array->describe() : "a tensor without memory";
}

// Keywords of a call's arguments: keys at the outermost level.
std::vector<std::string_view> keywords(const std::vector<Token>& tokens) {
  std::vector<std::string_view> out;
  std::vector<uint32_t> open;
  for (size_t i = 1; i < tokens.size(); ++i) {
    while (!open.empty() && open.back() == 0) open.pop_back();
    const Token& token = tokens[i];
    if (token.kind == TokenKind::kKey) {
      if (open.empty()) out.push_back(token.text);
      continue;
    }
    if (!open.empty()) --open.back();
    if (token.kind != TokenKind::kTensor && token.kind != TokenKind::kStatic) {
      open.push_back(token.count);
    }
  }
  return out;
}

bool is_leaf(const Token& token) {
  return token.kind == TokenKind::kTensor || token.kind == TokenKind::kStatic;
}

// Equal but for which kind of leaf stands there.
bool same_place(const Token& a, const Token& b) { return (is_leaf(a) && is_leaf(b)) || a == b; }

// The way out for what stands in a tensor's place.
std::string hint_for(std::string_view type) {
  if (type == "traced Tensor") return "inside another function call the function itself";
  if (type == "TensorLayout") return "a call takes values; compile(fn) takes declarations";
  if (type == "Tensor without a value") return "give it a value first";
  return "bare arrays go to execute_raw()";
}

class Check {
 public:
  Check(const Signature& signature, const Leaves& call) : s_(signature), call_(call) {}

  // For a call whose tokens differ from the signature's: raises the first difference.
  [[noreturn]] void differs() const {
    std::vector<Token> wanted = s_.arguments.tokens();
    check_count(wanted);
    check_tree(wanted);
    check_leaves(wanted);
    throw InternalError("internal: a call that differs in nothing was refused");
  }

  [[noreturn]] void fixed_differs(size_t leaf, const StaticValue& wanted) const {
    throw ValueError(fmt::format("{}: argument {}: compiled for {}, got {}", s_.function,
                                 route(leaf), wanted.view().str(), describe(call_.leaves[leaf])),
                     {.label = "argument_static",
                      .hint = "a value that is not a tensor is part of the program: compile again "
                              "for another one"});
  }

  [[noreturn]] void no_tensor(size_t leaf) const {
    const Leaf& is = call_.leaves[leaf];
    std::string type(is.type);
    if (type.empty()) type = describe(is);
    throw TypeError(
        fmt::format("{}: argument {}: expected a Tensor, got {}", s_.function, route(leaf), type),
        {.label = "argument_type", .hint = hint_for(type)});
  }

 private:
  std::string route(size_t leaf) const { return routes(call_.tokens, s_.names)[leaf]; }

  void check_count(const std::vector<Token>& wanted) const {
    uint32_t expected = wanted.at(0).count;
    uint32_t got = call_.tokens.empty() ? 0 : call_.tokens[0].count;
    auto expected_keys = keywords(wanted), got_keys = keywords(call_.tokens);
    if (expected == got && expected_keys == got_keys) return;
    std::string text =
        fmt::format("{}: expected {} positional argument(s), got {}", s_.function, expected, got);
    if (!expected_keys.empty() || !got_keys.empty()) {
      text += fmt::format(", and keywords [{}], got [{}]", fmt::join(expected_keys, ", "),
                          fmt::join(got_keys, ", "));
    }
    throw ValueError(text, {.label = "argument_count"});
  }

  void check_tree(const std::vector<Token>& wanted) const {
    const std::vector<Token>& got = call_.tokens;
    size_t i = 0;
    while (i < wanted.size() && i < got.size() && same_place(wanted[i], got[i])) ++i;
    if (i == wanted.size() && i == got.size()) return;
    // Argument counts agree, so the lists cannot end before they differ.
    check_internal(i < wanted.size() && i < got.size(), "argument trees without a difference");
    bool key = wanted[i].kind == TokenKind::kKey;
    throw ValueError(fmt::format("{}: argument {}: tree structure mismatch: expected {}, got {}",
                                 s_.function, route_of_token(key ? wanted : got, i, s_.names),
                                 program::describe(wanted[i]), program::describe(got[i])),
                     {.label = "argument_tree"});
  }

  void check_leaves(const std::vector<Token>& wanted) const {
    size_t leaf = 0, fixed = 0;
    for (const Token& token : wanted) {
      if (token.kind == TokenKind::kStatic) {
        const StaticValue& value = s_.statics[fixed++];
        if (call_.leaves[leaf].array != nullptr || call_.leaves[leaf].value != value.view()) {
          fixed_differs(leaf, value);
        }
      }
      leaf += is_leaf(token) ? 1u : 0u;
    }
    leaf = 0;
    for (const Token& token : wanted) {
      if (token.kind == TokenKind::kTensor && call_.leaves[leaf].array == nullptr) no_tensor(leaf);
      leaf += is_leaf(token) ? 1u : 0u;
    }
  }

  const Signature& s_;
  const Leaves& call_;
};

bool transposed(const Shape& shape, const Dims& dims) {
  return shape.size() == 2 && dims.size() == 2 && shape[0].is_static() && shape[1].is_static() &&
         shape[0].value() == dims[1] && shape[1].value() == dims[0];
}

[[noreturn]] void refuse_tensor(const Signature& s, size_t tensor, const runtime::Array& array) {
  const TensorGuard& guard = s.tensors[tensor];
  std::string route = s.tensor_routes()[tensor];
  std::string begin = fmt::format("{}: argument {}: ", s.function, route);
  std::string expected = begin + fmt::format("expected {}, got {}", brief(guard.dtype, guard.shape),
                                             array.valid() ? array.describe() : "nothing");
  std::string at = guard.location.empty() ? "" : guard.location + ", where it is declared";
  if (!array.valid()) {
    throw TypeError(expected, {.label = "argument_type", .location = at});
  }
  if (array.dtype() != guard.dtype) {
    throw ValueError(expected, {.label = "argument_dtype", .location = at});
  }
  if (guard.writable && !array.writable()) {
    throw ValueError(begin + "the program writes it, and its memory is read-only",
                     {.label = "argument_writable", .location = at, .hint = "pass a copy"});
  }
  const Dims& dims = array.dims();
  if (dims.size() != guard.shape.size()) {
    throw ShapeError(
        expected + fmt::format(": {} dimensions, got {}", guard.shape.size(), dims.size()),
        {.label = "argument_rank", .location = at});
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!guard.shape[i].is_static() || guard.shape[i].value() == dims[i]) continue;
    std::string hint;
    if (transposed(guard.shape, dims)) hint = "the tensor may be transposed";
    throw ShapeError(
        expected + fmt::format(": dimension {} is {}, got {}", i, guard.shape[i].value(), dims[i]),
        {.label = "argument_dim", .location = at, .hint = hint});
  }
  throw InternalError("internal: a tensor that differs in nothing was refused");
}

bool fits(const TensorGuard& guard, const runtime::Array& array) {
  const Dims& dims = array.dims();
  if (array.dtype() != guard.dtype || dims.size() != guard.shape.size() || !array.valid() ||
      (guard.writable && !array.writable())) {
    return false;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (guard.shape[i].is_static() && guard.shape[i].value() != dims[i]) return false;
  }
  return true;
}

// Prints a structure with what stands at its leaves.
class Printer {
 public:
  Printer(const Structure& structure, const std::vector<TensorGuard>& tensors,
          const std::vector<StaticValue>& statics, const std::vector<std::string>& names)
      : structure_(structure), tensors_(tensors), statics_(statics), names_(names) {}

  std::string print() { return at_ < structure_.size() ? value("") : ""; }

 private:
  std::string value(const std::string& name) {
    Token token = structure_.token(at_++);
    std::string begin = name.empty() ? "" : name + ": ";
    switch (token.kind) {
      case TokenKind::kTensor: {
        const TensorGuard& guard = tensors_.at(tensor_++);
        return begin + (guard.writable ? "buffer " : "") + brief(guard.dtype, guard.shape);
      }
      case TokenKind::kStatic:
        return (name.empty() ? "" : name + " = ") + statics_.at(static_++).view().str();
      case TokenKind::kArguments: return arguments(token.count);
      case TokenKind::kSequence: return begin + "[" + children(token.count) + "]";
      case TokenKind::kTuple: return begin + "(" + children(token.count) + ")";
      default: return begin + "{" + children(token.count) + "}";
    }
  }

  // The children of a container, each after its key where it has one.
  std::string children(uint32_t count) {
    std::string out;
    for (uint32_t i = 0; i < count; ++i) out += (i == 0 ? "" : ", ") + value(key());
    return out;
  }

  std::string arguments(uint32_t count) {
    std::string out;
    for (uint32_t i = 0; at_ < structure_.size(); ++i) {
      std::string name = i < count ? (i < names_.size() ? names_[i] : "") : key();
      out += (i == 0 ? "" : ", ") + value(name);
    }
    return "(" + out + ")";
  }

  std::string key() {
    if (at_ >= structure_.size()) return "";
    Token token = structure_.token(at_);
    if (token.kind != TokenKind::kKey) return "";
    ++at_;
    return std::string(token.text);
  }

  const Structure& structure_;
  const std::vector<TensorGuard>& tensors_;
  const std::vector<StaticValue>& statics_;
  const std::vector<std::string>& names_;
  size_t at_ = 0, tensor_ = 0, static_ = 0;
};

std::string tree_text(const Structure& structure) {
  std::string out;
  for (size_t i = 0; i < structure.size(); ++i) {
    out += (i == 0 ? "" : " · ") + program::describe(structure.token(i));
  }
  return out;
}

}  // namespace

std::string_view name(Guard::Kind kind) {
  switch (kind) {
    case Guard::Kind::kStructure: return "structure";
    case Guard::Kind::kStatic: return "static";
    case Guard::Kind::kDtype: return "dtype";
    case Guard::Kind::kShape: return "shape";
  }
  return "";
}

void Signature::check(const Leaves& call, std::vector<runtime::Array>& out) const {
  if (!arguments.matches(call.tokens)) Check(*this, call).differs();
  size_t fixed = 0, tensor = 0;
  for (size_t i = 0; i < call.leaves.size(); ++i) {
    if (call.leaves[i].array != nullptr) continue;
    const StaticValue& wanted = statics[fixed++];
    if (call.leaves[i].value != wanted.view()) Check(*this, call).fixed_differs(i, wanted);
  }
  for (const Leaf& leaf : call.leaves) {
    if (leaf.array == nullptr) continue;
    if (!fits(tensors[tensor], *leaf.array)) refuse_tensor(*this, tensor, *leaf.array);
    out.push_back(*leaf.array);
    ++tensor;
  }
}

void Signature::check_raw(std::span<const runtime::Array> arrays) const {
  if (arrays.size() != tensors.size()) {
    throw ValueError(
        fmt::format("{}: expected {} arrays, got {}", function, tensors.size(), arrays.size()),
        {.label = "argument_count"});
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!fits(tensors[i], arrays[i])) refuse_tensor(*this, i, arrays[i]);
  }
}

std::vector<std::string> Signature::tensor_routes() const {
  std::vector<std::string> out;
  std::vector<std::string> all = arguments.routes(names);
  size_t leaf = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Token token = arguments.token(i);
    if (!is_leaf(token)) continue;
    if (token.kind == TokenKind::kTensor) out.push_back(all[leaf]);
    ++leaf;
  }
  return out;
}

std::vector<runtime::ArgumentSpec> Signature::argument_specs() const {
  std::vector<runtime::ArgumentSpec> out;
  std::vector<std::string> routes = tensor_routes();
  for (size_t i = 0; i < tensors.size(); ++i) {
    out.push_back({routes[i], tensors[i].dtype, tensors[i].shape, tensors[i].writable});
  }
  return out;
}

std::vector<Guard> Signature::guards() const {
  std::vector<Guard> out;
  out.push_back({"", Guard::Kind::kStructure, tree_text(arguments), "argument_tree"});
  std::vector<std::string> all = arguments.routes(names);
  size_t leaf = 0, fixed = 0, tensor = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    TokenKind kind = arguments.token(i).kind;
    if (kind == TokenKind::kStatic) {
      out.push_back(
          {all[leaf++], Guard::Kind::kStatic, statics[fixed++].view().str(), "argument_static"});
    } else if (kind == TokenKind::kTensor) {
      const TensorGuard& guard = tensors[tensor++];
      const std::string& route = all[leaf++];
      out.push_back(
          {route, Guard::Kind::kDtype, std::string(tenon::name(guard.dtype)), "argument_dtype"});
      out.push_back({route, Guard::Kind::kShape, tenon::str(guard.shape), "argument_dim"});
    }
  }
  return out;
}

std::string Signature::str() const {
  return Printer(arguments, tensors, statics, names).print() + " → " +
         Printer(results, result_tensors, result_statics, {}).print();
}

void Signature::validate() const {
  auto check = [](const Structure& structure, size_t tensor_count, size_t static_count,
                  std::string_view what) {
    Structure::checked(structure.tokens());
    if (structure.count(TokenKind::kTensor) == tensor_count &&
        structure.count(TokenKind::kStatic) == static_count) {
      return;
    }
    throw ValueError(fmt::format("signature: the tables of {} do not fit their structure", what),
                     {.label = "signature"});
  };
  if (arguments.size() == 0 || arguments.token(0).kind != TokenKind::kArguments) {
    throw ValueError("signature: no arguments", {.label = "signature"});
  }
  check(arguments, tensors.size(), statics.size(), "arguments");
  check(results, result_tensors.size(), result_statics.size(), "results");
}

}  // namespace tenon::program
