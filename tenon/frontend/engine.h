// What runs a graph: machine code through the compiler, or the interpreter.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/compiler/compile.h"
#include "tenon/ir/graph.h"
#include "tenon/program/weights.h"
#include "tenon/runtime/executor.h"

namespace tenon {

class Engine {
 public:
  virtual ~Engine() = default;
  // Gives the external constants by whole name; before the first run when there are any. Each is
  // asked for when it is needed, and not kept longer. `shared` holds what other programs computed
  // from them (runtime/executor.h).
  using Externals = std::function<runtime::Array(const std::string& name)>;
  virtual void bind_from(const Externals& externals, runtime::SetupResults* shared) = 0;
  void bind(const program::ExternalArrays& externals) {
    bind_from([&](const std::string& name) { return externals.at(name); }, nullptr);
  }
  // Sets `results` to the graph's, in fresh memory; updates are written into the arguments.
  virtual void run(std::span<const runtime::Array> arguments,
                   std::vector<runtime::Array>& results) const = 0;
  // What became of the graph (compiler/explain.h); the first line begins with `title`.
  virtual std::string explain(const std::string& title, double trace_ms) const = 0;
};

// `arguments` describe the graph's parameters in order. With TENON_INTERPRET set (and not 0) in the
// environment programs run through the interpreter.
std::unique_ptr<Engine> make_engine(const ir::GraphPtr& graph,
                                    std::vector<runtime::ArgumentSpec> arguments);

}  // namespace tenon
