// A program ready to be called: a staged graph with its signature, its weights and the code that
// runs it. Without the types of arguments and results; compile.h adds those.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/frontend/staging.h"
#include "tenon/program/weights.h"

namespace tenon {

// Data of external constants by name.
using Weights = std::map<std::string, Tensor>;
// Gives a weight when a program needs it.
using WeightSource = std::function<Tensor(const program::Weight& weight)>;

struct CompileOptions {
  std::string name = {};                         // as in StageOptions
  std::vector<std::string> argument_names = {};  // as in StageOptions
  bool allow_subgraphs = true;                   // as in StageOptions
  Weights weights = {};                          // checked whole when given; else bind() later
  size_t cache_size = 64;                        // signatures that a compiled function keeps
  bool fail_on_recompile = false;                // of this function: recompile.h
  // Routes of tensor arguments that die in a call ("x", "p.w"): a result of the same dtype and
  // shape takes the memory of each, and the tensor is refused afterwards. Arrays and DLPack tensors
  // over that memory see it overwritten; borrowed and read-only memory is copied. Of in-process
  // calls: a saved program keeps its arguments, and so does execute_raw. Raises what donation.h
  // says.
  std::vector<std::string> donate = {};

  StageOptions stage() const { return {name, argument_names, allow_subgraphs}; }
};

// Levels of machine code that save() writes when none are named; "aarch64" is there to be added.
inline const std::vector<std::string> kSavedLevels = {"x86-64-v4-amx", "x86-64-v4-dot", "x86-64-v4",
                                                      "x86-64-v3", "x86-64"};

// The leaves of a call, the tensors among them, and room for arguments and results; reused between
// calls.
struct CallLeaves {
  program::Leaves leaves;
  std::vector<const Tensor*> tensors;
  std::vector<runtime::Array> arguments;  // of a program while it runs
  std::vector<runtime::Array> results;    // in order

  void clear() {
    leaves.clear();
    tensors.clear();
    arguments.clear();
    results.clear();
  }
  void open(program::TokenKind kind, size_t count, std::string_view name) {
    leaves.open(kind, count, name);
  }
  void key(std::string_view name) { leaves.key(name); }
  // Evaluates the tensor. A declaration and a tensor that is traced or not set stand as what they
  // are, for the signature to refuse.
  void tensor(const Tensor& tensor);
  // A bare array is no tensor: the signature points to execute_raw.
  void tensor(const runtime::Array& array);
  void fixed(program::StaticView value, std::string_view type) { leaves.fixed(value, type); }
};

class Executable {
 public:
  Executable(Staged staged, const CompileOptions& options);
  ~Executable();

  // The checked call: sets call.results; buffers are written.
  void call(CallLeaves& call) const;
  // Bare arrays in the order of the tensors, without structure and statics.
  std::vector<runtime::Array> execute_raw(const std::vector<runtime::Array>& arguments) const;

  // Raises TypeError [weight_value] for one without a value, and what program/weights.h says.
  void bind(const Weights& weights);
  const std::vector<program::Weight>& weights() const;
  const Staged& staged() const;
  // Writes an artifact that a process without the compiler loads (tenon/runtime.h). Needs no
  // weights and no call: weights stay external, bound by name at load. Raises IoError and what
  // compiling raises.
  void save(const std::string& path, const std::vector<std::string>& levels = kSavedLevels) const;
  const std::string& name() const { return staged().signature.function; }
  // name, signature, whether its weights are bound.
  std::string str() const;
  // Kernels, what fused and why not, memory and times: compiler/explain.h.
  std::string explain() const;

 private:
  friend void bind_weights_from(const std::vector<std::shared_ptr<Executable>>& programs,
                                const WeightSource& source);
  void bind_from(const WeightSource& source, runtime::SetupResults* shared);
  void check_bound() const;
  void donate_arguments(const CallLeaves& call, std::vector<runtime::Array>& arguments) const;
  void run(std::span<const runtime::Array> arguments, std::vector<runtime::Array>& results) const;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Binds several programs, each to the weights that it reads. What they compute from weights when
// these are bound (operands packed for products) is computed and kept once for all of them. Raises
// what Executable::bind raises, a weight that none of them reads included.
void bind_weights(const std::vector<std::shared_ptr<Executable>>& programs, const Weights& weights);
// The same with weights that are made one by one and kept no longer than needed: what is decoded to
// be packed never stands in memory whole. Raises what `source` raises, TypeError and ValueError as
// Executable::bind.
void bind_weights_from(const std::vector<std::shared_ptr<Executable>>& programs,
                       const WeightSource& source);

// Several programs in one file; constants that they share enter it once. ValueError for two of one
// name.
void save(const std::string& path, const std::vector<std::shared_ptr<const Executable>>& programs,
          const std::vector<std::string>& levels = kSavedLevels);

// --- compiling switched off ---

// True when TENON_DISABLE_COMPILE was set (and not 0) at its first use, or while a scope stands on
// this thread: compiled functions then call the function itself on eager tensors.
bool compile_disabled();
class DisableCompile {
 public:
  DisableCompile();
  ~DisableCompile();
  DisableCompile(const DisableCompile&) = delete;
  DisableCompile& operator=(const DisableCompile&) = delete;
};

}  // namespace tenon
