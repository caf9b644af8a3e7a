#include "tenon/frontend/engine.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "tenon/compiler/explain.h"
#include "tenon/interp/interpreter.h"
#include "tenon/runtime/binding.h"

namespace tenon {
namespace {

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

runtime::Array copy_of(const Literal& literal) {
  runtime::Array array = runtime::Array::empty(literal.dtype(), literal.dims());
  if (literal.bytes() > 0) std::memcpy(array.mutable_data(), literal.data(), literal.bytes());
  return array;
}

class InterpreterEngine : public Engine {
 public:
  InterpreterEngine(ir::GraphPtr graph, std::vector<runtime::ArgumentSpec> arguments)
      : graph_(std::move(graph)),
        specs_(std::move(arguments)),
        binding_(graph_->name, specs_, symbols_) {}

  void bind_from(const Externals& externals, runtime::SetupResults*) override {
    for (const program::Weight& weight : program::externals_of(graph_)) {
      externals_[weight.name] = externals(weight.name);
    }
  }

  std::vector<runtime::Array> run(std::vector<runtime::Array> arguments) const override {
    std::vector<int64_t> sizes = runtime::SymbolTable::machine_values();
    binding_.bind(arguments, sizes);
    runtime::check_writable_apart(graph_->name, specs_, arguments);
    std::vector<Literal> literals;
    for (const runtime::Array& array : arguments) literals.push_back(array.to_literal());
    const std::vector<Literal> outputs =
        interp::run(*graph_, literals,
                    [this](const std::string& name) { return externals_.at(name).to_literal(); });
    // Everything is computed before the first write: a result may be an argument's memory.
    std::vector<runtime::Array> fresh;
    for (const Literal& literal : outputs) fresh.push_back(copy_of(literal));
    for (size_t i = 0; i < graph_->updates.size(); ++i) {
      const runtime::Array& value = fresh[graph_->results.size() + i];
      runtime::Array& target = arguments[graph_->updates[i].param];
      if (value.bytes() > 0) std::memcpy(target.mutable_data(), value.data(), value.bytes());
    }
    fresh.resize(graph_->results.size());
    return fresh;
  }

  std::string explain(const std::string& title, double trace_ms) const override {
    return fmt::format("{}     through the interpreter, {} operations, traced in {:.1f} ms\n",
                       title, graph_->nodes().size(), trace_ms);
  }

 private:
  ir::GraphPtr graph_;
  std::vector<runtime::ArgumentSpec> specs_;
  runtime::SymbolTable symbols_;
  runtime::Binding binding_;
  program::ExternalArrays externals_;
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

  std::vector<runtime::Array> run(std::vector<runtime::Array> arguments) const override {
    try {
      return executor_->call(arguments);
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
