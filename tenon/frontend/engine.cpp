#include "tenon/frontend/engine.h"

#include <cstdlib>
#include <string_view>

#include "tenon/compiler/explain.h"
#include "tenon/interp/interpreter.h"
#include "tenon/program/interpreted.h"

namespace tenon {
namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

class InterpreterEngine : public Engine {
 public:
  InterpreterEngine(const ir::GraphPtr& graph, std::vector<runtime::ArgumentSpec> arguments)
      : interpreted_(graph->name, graph, std::move(arguments)) {}

  void bind_from(const Externals& externals, runtime::SetupResults*) override {
    program::ExternalArrays arrays;
    for (const program::Weight& weight : program::externals_of(interpreted_.graph())) {
      arrays[weight.name] = externals(weight.name);
    }
    interpreted_.bind(std::move(arrays));
  }

  void run(std::span<const runtime::Array> arguments,
           std::vector<runtime::Array>& results) const override {
    results = interpreted_.run(arguments);
  }

  std::string explain(const std::string& title, double trace_ms) const override {
    return fmt::format("{}     through the interpreter, {} operations, traced in {:.1f} ms\n",
                       title, interpreted_.graph()->nodes().size(), trace_ms);
  }

 private:
  program::Interpreted interpreted_;
};

class CompiledEngine : public Engine {
 public:
  CompiledEngine(const ir::GraphPtr& graph, std::vector<runtime::ArgumentSpec> arguments)
      : graph_(graph), compiled_(compiler::compile(graph)) {
    for (const ir::GraphPtr& body : compiled_.graphs) nodes_.push_back(body->nodes());
    executor_ = std::make_unique<runtime::Executor>(
        compiled_.module, std::move(arguments),
        [this](const abi::EvalStep& step, std::span<const Literal> operands,
               const Dim::Lookup& symbols) {
          return interp::evaluate(*nodes_[step.graph][step.node], operands, symbols);
        });
    if (compiled_.module->externals.empty()) executor_->bind({});
  }

  void bind_from(const Externals& externals, runtime::SetupResults* shared) override {
    const std::vector<abi::External>& wanted = compiled_.module->externals;
    executor_->bind_from([&](size_t i) { return externals(wanted[i].name); }, shared);
  }

  void run(std::span<const runtime::Array> arguments,
           std::vector<runtime::Array>& results) const override {
    try {
      executor_->call(arguments, results);
    } catch (const Error& error) {
      std::vector<Literal> literals;
      for (const runtime::Array& array : arguments) literals.push_back(array.to_literal());
      interp::explain_failure(error, *graph_, literals);
      throw;
    }
  }

  std::string explain(const std::string& title, double trace_ms) const override {
    return compiler::explain(compiled_, *executor_, title, trace_ms);
  }

 private:
  ir::GraphPtr graph_;
  compiler::Compiled compiled_;
  std::vector<std::vector<ir::NodePtr>> nodes_;
  std::unique_ptr<runtime::Executor> executor_;
};

}  // namespace

std::unique_ptr<Engine> make_engine(const ir::GraphPtr& graph,
                                    std::vector<runtime::ArgumentSpec> arguments) {
  if (is_set("TENON_INTERPRET"))
    return std::make_unique<InterpreterEngine>(graph, std::move(arguments));
  return std::make_unique<CompiledEngine>(graph, std::move(arguments));
}

}  // namespace tenon
