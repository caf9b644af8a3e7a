// A graph run by the interpreter as a program is run: names bound, arguments checked, writes last.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/ir/graph.h"
#include "tenon/program/weights.h"
#include "tenon/runtime/binding.h"

namespace tenon::program {

class Interpreted {
 public:
  // `function` begins the errors; `arguments` describe the graph's parameters.
  Interpreted(std::string function, ir::GraphPtr graph,
              std::vector<runtime::ArgumentSpec> arguments);

  const ir::GraphPtr& graph() const { return graph_; }
  void bind(ExternalArrays externals) { externals_ = std::move(externals); }
  // Results in memory of their own. Arguments that the graph updates are written once everything is
  // computed. Raises what binding names, check_writable_apart and the ops raise; then nothing has
  // been written.
  std::vector<runtime::Array> run(std::span<const runtime::Array> arguments) const;

 private:
  std::string function_;
  ir::GraphPtr graph_;
  std::vector<runtime::ArgumentSpec> specs_;
  runtime::SymbolTable symbols_;
  runtime::Binding binding_;
  ExternalArrays externals_;
};

}  // namespace tenon::program
