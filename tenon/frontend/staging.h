// How a function becomes a graph: its arguments are walked, every tensor leaf becomes a parameter,
// everything else is static; then the function runs under a trace.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tenon/frontend/function_name.h"
#include "tenon/frontend/index.h"
#include "tenon/frontend/trace.h"
#include "tenon/ir/text.h"
#include "tenon/program/signature.h"
#include "tenon/program/tree.h"

namespace tenon {

struct StageOptions {
  std::string name = {};  // of the program; by default what function_name.h finds
  std::vector<std::string> argument_names = {};  // of positional arguments, for errors and text
  bool allow_subgraphs = true;                   // false: bodies are traced into their callers
};

// A graph with the signature of the function that it came from.
struct Staged {
  ir::GraphPtr graph;
  program::Signature signature;
  double trace_ms = 0;
};

// Walks values with Tensor leaves and remembers them in order; for arguments and results.
class TensorTree {
 public:
  void open(program::TokenKind kind, size_t count, std::string_view name) {
    tokens.push_back({kind, static_cast<uint32_t>(count), name});
  }
  void key(std::string_view name) { tokens.push_back({program::TokenKind::kKey, 0, name}); }
  void tensor(Tensor& leaf) {
    tokens.push_back({program::TokenKind::kTensor});
    tensors.push_back(&leaf);
    is_tensor.push_back(true);
  }
  void fixed(program::StaticView value, std::string_view) {
    tokens.push_back({program::TokenKind::kStatic});
    statics.emplace_back(value);
    is_tensor.push_back(false);
  }
  // Routes of the tensors.
  std::vector<std::string> routes(const std::vector<std::string>& names = {}) const;

  std::vector<program::Token> tokens;
  std::vector<Tensor*> tensors;
  std::vector<program::StaticValue> statics;
  std::vector<bool> is_tensor;  // by leaf
};

enum class SpecMode : uint8_t {
  kLayouts,  // tensor leaves are declarations
  kValues,   // tensor leaves are values; their sizes are baked in
};

// Runs one tracing. `arguments` has been walked; its tensors are replaced by the parameters.
class Staging {
 public:
  Staging(const std::string& name, const StageOptions& options, TensorTree& arguments,
          SpecMode mode);
  // `result` has been walked inside this tracing. Raises TypeError when it holds no tensor and no
  // buffer was written.
  Staged finish(TensorTree& result);

 private:
  StageOptions options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Trace::Scope scope_;
  program::Signature signature_;
};

// What a function's argument is inside the trace: a declaration becomes a tensor.
template <class T>
using Traced =
    std::conditional_t<std::is_base_of_v<TensorLayout, std::decay_t<T>>, Tensor, std::decay_t<T>>;
template <class T>
inline constexpr bool kIsLayout = std::is_base_of_v<TensorLayout, std::decay_t<T>>;
template <class R>
using Returned = std::conditional_t<std::is_same_v<R, TensorView>, Tensor, R>;
template <class F, class... Args>
using ResultOf = Returned<std::decay_t<std::invoke_result_t<const F&, Traced<Args>&...>>>;

// A function without results still has its writes.
struct NoResult {};
[[maybe_unused]] constexpr auto tenon_record_of(const NoResult*) {
  return program::Record("nothing");
}
template <class R>
using Stored = std::conditional_t<std::is_void_v<R>, NoResult, R>;

template <class R>
struct TracedFunction {
  Staged staged;
  std::shared_ptr<const Stored<R>> result;  // with traced tensors in place of values
};

template <class F, class... Args>
TracedFunction<ResultOf<F, Args...>> trace_function(const F& fn, const StageOptions& options,
                                                    SpecMode mode, const Args&... specs) {
  using R = ResultOf<F, Args...>;
  std::tuple<Traced<Args>...> arguments{Traced<Args>(specs)...};
  TensorTree in;
  std::apply([&in](auto&... argument) { program::walk_arguments(in, argument...); }, arguments);
  Staging staging(options.name, options, in, mode);
  TensorTree out;
  auto result = std::make_shared<Stored<R>>([&]() -> Stored<R> {
    if constexpr (std::is_void_v<R>) {
      std::apply(fn, arguments);
      return {};
    } else {
      return std::apply(fn, arguments);
    }
  }());
  program::walk(*result, out);
  return {staging.finish(out), std::move(result)};
}

// What stage() returns, without the types of arguments and results.
class StagedProgram {
 public:
  explicit StagedProgram(Staged staged) : staged_(std::move(staged)) {}
  const ir::GraphPtr& graph() const { return staged_.graph; }
  const program::Signature& signature() const { return staged_.signature; }
  const std::string& name() const { return staged_.signature.function; }
  // The whole module, bodies included.
  std::string str(const ir::PrintOptions& options = {}) const;
  // How many ops of that name ("mul"), shared bodies counted once.
  int64_t count(std::string_view op) const { return ir::count(staged_.graph, op); }
  // Raises InternalError when the graph breaks a rule.
  void verify() const;
  const Staged& staged() const { return staged_; }

 private:
  Staged staged_;
};
std::ostream& operator<<(std::ostream& out, const StagedProgram& staged);

}  // namespace tenon
