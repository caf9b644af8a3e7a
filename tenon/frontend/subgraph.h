// Shared bodies: one definition, many calls.
//
//   auto block = as_subgraph(fn, {.prefix = "layers.0."});
//   y = block(x);                          // inside a trace: a call of @fn
//
// Two calls share a body when their traced texts are equal, whatever the functions are called; a
// given key vouches for that, and then the body is traced once. Static arguments, operand types and
// what the function reads are part of the text. Inside compile() and stage() only; with compiling
// switched off it is the function itself.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "tenon/frontend/executable.h"
#include "tenon/frontend/staging.h"

namespace tenon {

struct SubgraphOptions {
  std::string name = {};    // of the body; by default as for compile
  std::string prefix = {};  // put before relative names of external constants, calls nest
  // Given: calls with this key, equal static arguments and equal operand types are one body, which
  // is traced once. Empty: bodies are traced at each call and compared.
  std::string key = {};
};

// A named tensor whose data comes when the program is compiled, loaded or called. Absolute names
// are one tensor wherever they stand; relative ones get the prefixes of the calls around them.
// Raises TypeError outside a trace and for a BufferLayout, ValueError for a name that has another
// type elsewhere in the program.
Tensor constant_external(const std::string& name, const TensorLayout& layout, bool relative = false,
                         Here at = Here::current());

// Internal: one call of a body.
class SubgraphCall {
 public:
  // `arguments` has been walked; operands are its tensors. `type` is the type of the result.
  SubgraphCall(const std::string& name, const SubgraphOptions& options, TensorTree& arguments,
               const std::type_info& type, Here at);
  ~SubgraphCall();

  // True: the function runs in the caller's trace, on the arguments as they are.
  bool inlined() const { return inlined_; }
  // The result of the body that the key names, or null.
  std::shared_ptr<const void> known() const;
  // Opens the body's trace; the arguments become its parameters.
  void begin();
  // Ends it.
  void finish(TensorTree& result, std::shared_ptr<const void> kept);
  // The call: sets the tensors of the result, and the buffers that the body wrote.
  void connect(TensorTree& result);

 private:
  std::string shared_key() const;

  const SubgraphOptions& options_;
  std::string name_;
  TensorTree& arguments_;
  std::string type_;
  Here at_;
  bool inlined_ = false;
  std::string outer_prefix_;
  std::vector<Tensor> operands_;
  std::vector<ir::Value> values_;
  TracePtr caller_;
  std::unique_ptr<Trace::Scope> scope_;
  Trace::Body body_;
};

template <class F>
class Subgraph {
 public:
  Subgraph(F fn, SubgraphOptions options, Here at)
      : fn_(std::move(fn)), options_(std::move(options)), at_(at) {
    if (options_.name.empty()) options_.name = callable_name(fn_, at);
  }

  template <class... Args>
  auto operator()(const Args&... args) const {
    using R = ResultOf<F, Args...>;
    static_assert(!kIsLayout<R>, "a body returns tensors");
    std::tuple<Traced<Args>...> arguments{Traced<Args>(args)...};
    if (Trace::current() == nullptr && compile_disabled())
      return static_cast<R>(std::apply(fn_, arguments));
    TensorTree in;
    std::apply([&in](auto&... argument) { program::walk_arguments(in, argument...); }, arguments);
    SubgraphCall call(options_.name, options_, in, typeid(R), at_);
    auto run = [&]() -> Stored<R> {
      if constexpr (std::is_void_v<R>) {
        std::apply(fn_, arguments);
        return {};
      } else {
        return std::apply(fn_, arguments);
      }
    };
    if (call.inlined()) return static_cast<R>(run());
    auto traced = std::static_pointer_cast<const Stored<R>>(call.known());
    if (traced == nullptr) {
      call.begin();
      auto made = std::make_shared<Stored<R>>(run());
      TensorTree out;
      program::walk(*made, out);
      call.finish(out, made);
      traced = std::move(made);
    }
    Stored<R> result = *traced;
    TensorTree out;
    program::walk(result, out);
    call.connect(out);
    return static_cast<R>(std::move(result));
  }

 private:
  F fn_;
  SubgraphOptions options_;
  Here at_;
};

template <class F>
Subgraph<std::decay_t<F>> as_subgraph(F&& fn, SubgraphOptions options = {},
                                      Here at = Here::current()) {
  return {std::forward<F>(fn), std::move(options), at};
}
// as_subgraph<block>({.prefix = "layers.0."}): the body bears the function's name.
template <auto kFn>
auto as_subgraph(SubgraphOptions options = {}, Here at = Here::current()) {
  if (options.name.empty()) options.name = function_name<kFn>();
  return as_subgraph(kFn, std::move(options), at);
}

}  // namespace tenon
