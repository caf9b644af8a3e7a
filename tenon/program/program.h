// A saved program, loaded: called like the function that it was made from.
#pragma once

#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/program/artifact.h"
#include "tenon/program/leaf.h"
#include "tenon/runtime/array.h"
#include "tenon/runtime/executor.h"

namespace tenon::program {

struct LoadOptions {
  std::string program = {};   // which one, by function name; empty: the only one
  bool data_only = false;     // never run the file's machine code: the interpreter runs the graph
  bool require_code = false;  // UnsupportedError when no machine code fits this CPU
  ExternalArrays externals = {};  // checked whole when given; else bind() later
};

// Thread-safe, but for bind(). Copies share one program.
class TENON_API Program {
 public:
  // Raises what Artifact::open raises, and what bind() raises for `externals`. Runs the file's
  // machine code unless `data_only`; with none for this CPU the interpreter runs the graph.
  static Program load(const std::string& path, const LoadOptions& options = {});
  static Program load(std::shared_ptr<const Artifact> artifact, const LoadOptions& options = {});

  const Signature& signature() const;
  const std::vector<Weight>& weights() const;
  const Artifact& artifact() const;
  // "x86-64-v4", …; "interpreter".
  std::string level() const;

  // Raises what program::check_weights raises (weights.h).
  void check_weights(const ExternalArrays& externals) const;
  void bind(const ExternalArrays& externals) { bind_all({this, 1}, externals); }
  // Binds several programs, each to the externals that it reads. What they compute from externals
  // is computed and kept once for all of them. KeyError for one that none of them reads.
  // `results`: what is known of that already, by abi::Module::setup_keys, and receives the rest.
  static void bind_all(std::span<Program> programs, const ExternalArrays& externals,
                       runtime::SetupResults* results = nullptr);
  // The same with externals that are asked for when they are about to be read, and kept no longer.
  static void bind_all_from(std::span<Program> programs, const WeightSource& source,
                            runtime::SetupResults* results = nullptr);
  bool bound() const;

  // The checked call (signature.h). Sets `results`, in order; writable arguments are written. With
  // room in that list, a call of sizes seen before allocates nothing.
  void call(const Leaves& call, std::vector<runtime::Array>& results) const;
  // Bare arrays in the order of the tensors.
  std::vector<runtime::Array> execute_raw(std::span<const runtime::Array> arguments) const;

  // step: (x: f32["batch", 64]) → f32["batch", 32], x86-64-v4, weights bound
  std::string str() const;

 private:
  struct Impl;
  explicit Program(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  void bind_from(const WeightSource& source, runtime::SetupResults* shared);
  std::shared_ptr<Impl> impl_;
};
TENON_API std::ostream& operator<<(std::ostream& out, const Program& program);  // str()

}  // namespace tenon::program
