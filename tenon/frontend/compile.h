// Compiling functions over tensors.
//
//   auto fast = compile(gelu);            // traced at the first call, kept by signature
//   Tensor y = fast(x);
//
//   auto step = compile(fn)(TensorLayout(f32, {"batch", 64}), params_layout, 2.0f);
//   Tensor y = step(x, params, 2.0f);     // any batch; structure and statics are checked
//
// A tensor anywhere in the arguments is an input of the program; every other value is static: baked
// in and compared at each call.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "tenon/base/of_thread.h"
#include "tenon/frontend/executable.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/recompile.h"
#include "tenon/frontend/signature_cache.h"
#include "tenon/frontend/staging.h"

namespace tenon {

// A program compiled from declarations. Copies share it. Many threads may call it.
template <class R>
class CompiledCallable {
 public:
  CompiledCallable(TracedFunction<R> traced, const CompileOptions& options)
      : result_(std::move(traced.result)),
        executable_(std::make_shared<Executable>(std::move(traced.staged), options)) {}

  // Checks the call against the signature, runs, and returns what the function returns.
  template <class... Args>
  R operator()(const Args&... args) const {
    const Reused<CallLeaves> call;
    program::walk_arguments(*call, args...);
    return this->call(*call);
  }
  R call(CallLeaves& call) const {
    if constexpr (std::is_void_v<R>) {
      executable_->call(call);
    } else {
      R result = *result_;
      executable_->call(call);
      Assign assign{call.results};
      program::walk(result, assign);
      return result;
    }
  }

  // One array per tensor, in the order of the signature, without structure and statics; results in
  // order.
  std::vector<runtime::Array> execute_raw(const std::vector<runtime::Array>& arguments) const {
    return executable_->execute_raw(arguments);
  }
  // Gives the external constants: all of them, checked.
  void bind(const Weights& weights) { executable_->bind(weights); }
  // Writes an artifact, the program as one file (executable.h).
  void save(const std::string& path, const std::vector<std::string>& levels = kSavedLevels) const {
    executable_->save(path, levels);
  }
  const std::vector<program::Weight>& weights() const { return executable_->weights(); }
  const program::Signature& signature() const { return executable_->staged().signature; }
  const ir::GraphPtr& graph() const { return executable_->staged().graph; }
  const std::string& name() const { return executable_->name(); }
  std::string str() const { return executable_->str(); }
  std::string explain() const { return executable_->explain(); }
  const std::shared_ptr<Executable>& executable() const { return executable_; }

 private:
  struct Assign {
    std::vector<runtime::Array>& arrays;
    size_t next = 0;
    void open(program::TokenKind, size_t, std::string_view) {}
    void key(std::string_view) {}
    void tensor(Tensor& leaf) { leaf = Tensor(std::move(arrays[next++])); }
    void fixed(program::StaticView, std::string_view) {}
  };

  std::shared_ptr<const Stored<R>> result_;
  std::shared_ptr<Executable> executable_;
};

template <class R>
std::ostream& operator<<(std::ostream& out, const CompiledCallable<R>& program) {
  return out << program.str();
}

// A staged function: its graph, ready to be printed, counted and compiled, any number of times.
template <class R>
class StagedGraph : public StagedProgram {
 public:
  explicit StagedGraph(TracedFunction<R> traced)
      : StagedProgram(traced.staged), result_(std::move(traced.result)) {}
  CompiledCallable<R> compile(const CompileOptions& options = {}) const {
    return {{staged(), result_}, options};
  }

 private:
  std::shared_ptr<const Stored<R>> result_;
};

// stage(fn)(specs…)
template <class F>
class Stager {
 public:
  Stager(F fn, StageOptions options, Here at) : fn_(std::move(fn)), options_(std::move(options)) {
    if (options_.name.empty()) options_.name = callable_name(fn_, at);
  }
  template <class... Specs>
  auto operator()(const Specs&... specs) const {
    using R = ResultOf<F, Specs...>;
    return StagedGraph<R>(trace_function(fn_, options_, SpecMode::kLayouts, specs...));
  }

 private:
  F fn_;
  StageOptions options_;
};

template <class F>
Stager<std::decay_t<F>> stage(F&& fn, StageOptions options = {}, Here at = Here::current()) {
  return {std::forward<F>(fn), std::move(options), at};
}
// stage<gelu>()(specs…): the graph bears the function's name.
template <auto kFn>
auto stage(StageOptions options = {}, Here at = Here::current()) {
  if (options.name.empty()) options.name = function_name<kFn>();
  return stage(kFn, std::move(options), at);
}

// compile(fn): called with tensors it is fn, compiled once per signature; called with layouts it
// gives a program.
template <class F>
class CompiledFunction {
 public:
  CompiledFunction(F fn, CompileOptions options, Here at)
      : fn_(std::make_shared<const F>(std::move(fn))),
        options_(std::move(options)),
        place_(place_text(at)),
        cache_(std::make_shared<SignatureCache>(options_.cache_size)) {
    if (options_.name.empty()) options_.name = callable_name(*fn_, at);
  }

  template <class... Args>
  auto operator()(const Args&... args) const {
    if constexpr ((kIsLayout<Args> || ...)) {
      return with(args...);
    } else {
      return call(args...);
    }
  }

  // From declarations that stand inside structs and containers alone.
  template <class... Specs>
  auto with(const Specs&... specs) const {
    using R = ResultOf<F, Specs...>;
    return CompiledCallable<R>(trace_function(*fn_, options_.stage(), SpecMode::kLayouts, specs...),
                               options_);
  }

  // Programs kept.
  size_t cached() const { return cache_->size(); }
  // Of the program that was compiled last.
  std::string explain() const {
    std::lock_guard lock(last_->mutex);
    return last_->executable == nullptr ? options_.name + ": not called yet\n"
                                        : last_->executable->explain();
  }
  // Why the last call that compiled another program did so, in one line: the relation that broke,
  // expected and actual, where the function was given to compile. Empty when there was none.
  //   step: argument x: expected f32[4], got f32[5]: dimension 0 is 4, got 5 [argument_dim],
  //   compiled at model.cpp:31
  std::string last_miss() const {
    std::lock_guard lock(last_->mutex);
    return last_->miss;
  }
  const std::string& name() const { return options_.name; }

 private:
  // What a call that is not compiled needs to know of its arguments.
  struct Look {
    bool traced = false;
    void open(program::TokenKind, size_t, std::string_view) {}
    void key(std::string_view) {}
    void tensor(const Tensor& leaf) { traced = traced || leaf.is_traced(); }
    void fixed(program::StaticView, std::string_view) {}
  };

  template <class... Args>
  ResultOf<F, Args...> call(const Args&... args) const {
    using R = ResultOf<F, Args...>;
    using Program = CompiledCallable<R>;
    if (Trace::current() != nullptr || compile_disabled()) {
      Look look;
      program::walk_arguments(look, args...);
      if (look.traced || compile_disabled()) return direct(args...);
    }
    const Reused<CallLeaves> reused;
    CallLeaves& call = *reused;
    program::walk_arguments(call, args...);
    std::shared_ptr<const void> found = cache_->find(call.leaves, typeid(R));
    if (found == nullptr) {
      note_miss(cache_->why_missed(call.leaves));
      auto made = std::make_shared<const Program>(
          trace_function(*fn_, options_.stage(), SpecMode::kValues, args...), options_);
      {
        std::lock_guard lock(last_->mutex);
        last_->executable = made->executable();
      }
      std::shared_ptr<const program::Signature> signature(made->executable(), &made->signature());
      found = cache_->insert(call.leaves, typeid(R), std::move(made), std::move(signature));
    }
    return static_cast<const Program*>(found.get())->call(call);
  }

  void note_miss(const std::string& why) const {
    if (why.empty()) return;
    const std::string line = why + ", compiled at " + place_;
    if (options_.fail_on_recompile || recompile_fails()) refuse_recompile(options_.name, line);
    std::lock_guard lock(last_->mutex);
    last_->miss = line;
  }

  // Inside another function's trace, or with compiling switched off: the function itself.
  template <class... Args>
  ResultOf<F, Args...> direct(const Args&... args) const {
    std::tuple<std::decay_t<Args>...> copies{std::decay_t<Args>(args)...};
    return std::apply(*fn_, copies);
  }

  struct Last {
    std::mutex mutex;
    std::shared_ptr<Executable> executable;
    std::string miss;
  };

  std::shared_ptr<const F> fn_;
  CompileOptions options_;
  std::string place_;  // of the call of compile
  std::shared_ptr<SignatureCache> cache_;
  std::shared_ptr<Last> last_ = std::make_shared<Last>();
};

template <class F>
CompiledFunction<std::decay_t<F>> compile(F&& fn, CompileOptions options = {},
                                          Here at = Here::current()) {
  return {std::forward<F>(fn), std::move(options), at};
}
// compile<gelu>(): the program bears the function's name, whatever the linker does with it.
template <auto kFn>
auto compile(CompileOptions options = {}, Here at = Here::current()) {
  if (options.name.empty()) options.name = function_name<kFn>();
  return compile(kFn, std::move(options), at);
}

}  // namespace tenon
