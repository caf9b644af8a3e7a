#include "tenon/program/program.h"

#include <ostream>

#include "tenon/base/error.h"
#include "tenon/base/of_thread.h"
#include "tenon/interp/interpreter.h"
#include "tenon/program/interpreted.h"
#include "tenon/runtime/cpu.h"
#include "tenon/runtime/executor.h"

namespace tenon::program {

using runtime::Array;

struct Program::Impl {
  std::shared_ptr<const Artifact> artifact;
  size_t index = 0;
  const ProgramInfo* info = nullptr;
  std::shared_ptr<const abi::Module> module;
  std::vector<std::vector<ir::NodePtr>> eval_nodes;
  std::unique_ptr<runtime::Executor> executor;  // or `interpreted`
  std::unique_ptr<Interpreted> interpreted;
  ExternalArrays externals;  // for the errors of machine code; empty when they were not kept
  bool bound = false;

  const std::string& function() const { return info->signature.function; }

  void prepare(const LoadOptions& options) {
    bool fits_cpu = false;
    if (!options.data_only && info->has_module) {
      module = artifact->module(index);
      fits_cpu = runtime::Executor::fits(*module);
    }
    if (fits_cpu) {
      use_executor();
    } else if (options.require_code) {
      throw UnsupportedError(
          fmt::format("{}: {} has no machine code for this CPU ({})", artifact->path(), function(),
                      fmt::join(runtime::usable_levels(), ", ")),
          {.label = "cpu_level", .hint = "load it without require_code: the interpreter runs it"});
    } else {
      module.reset();
      interpreted = std::make_unique<Interpreted>(function(), artifact->graph(index),
                                                  info->signature.argument_specs());
    }
    bound = info->weights.empty();
    if (bound && executor != nullptr) executor->bind({});
  }

  void use_executor() {
    for (const ir::GraphPtr& g : artifact->eval_graphs(index)) eval_nodes.push_back(g->nodes());
    auto eval = [this](const abi::EvalStep& step, std::span<const Literal> operands,
                       const Dim::Lookup& symbols) {
      bool right = step.graph < eval_nodes.size() && step.node < eval_nodes[step.graph].size();
      if (!right) throw FormatError(artifact->path() + ": a step evaluates nothing (file damaged)");
      const ir::Node& node = *eval_nodes[step.graph][step.node];
      if (node.op->eval == nullptr || node.operands.size() != operands.size()) {
        throw FormatError(artifact->path() + ": a step does not fit its operation (file damaged)");
      }
      return interp::evaluate(node, operands, symbols);
    };
    executor = std::make_unique<runtime::Executor>(module, info->signature.argument_specs(), eval);
  }

  void run(std::span<const Array> arguments, std::vector<Array>& results) const {
    if (!bound) {
      std::string names;
      for (const Weight& w : info->weights) names += (names.empty() ? "" : ", ") + w.name;
      throw KeyError(fmt::format("{}: its weights are not bound: {}", function(), names),
                     {.label = "weight_missing", .hint = "call bind() first"});
    }
    if (interpreted != nullptr) {
      results = interpreted->run(arguments);
      return;
    }
    try {
      executor->call(arguments, results);
    } catch (const Error& error) {
      explain(error, arguments);
      throw;
    }
  }

  // The file's graph says more of a failure than its code.
  void explain(const Error& error, std::span<const Array> arguments) const {
    std::vector<Literal> literals;
    for (const Array& argument : arguments) literals.push_back(argument.to_literal());
    interp::Externals known;
    if (!externals.empty()) {
      known = [&](const std::string& name) { return externals.at(name).to_literal(); };
    }
    interp::explain_failure(error, *artifact->graph(index), literals, known);
  }
};

Program Program::load(const std::string& path, const LoadOptions& options) {
  return load(Artifact::open(path), options);
}

Program Program::load(std::shared_ptr<const Artifact> artifact, const LoadOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->index = artifact->find(options.program);
  impl->info = &artifact->programs()[impl->index];
  impl->artifact = std::move(artifact);
  impl->prepare(options);
  Program program(std::move(impl));
  if (!options.externals.empty()) program.bind(options.externals);
  return program;
}

const Signature& Program::signature() const { return impl_->info->signature; }
const std::vector<Weight>& Program::weights() const { return impl_->info->weights; }
const Artifact& Program::artifact() const { return *impl_->artifact; }
bool Program::bound() const { return impl_->bound; }

std::string Program::level() const {
  if (impl_->executor == nullptr) return "interpreter";
  const std::string& level = impl_->executor->level();
  return level.empty() ? "no kernels" : level;
}

void Program::check_weights(const ExternalArrays& externals) const {
  program::check_weights(impl_->function(), weights(), externals);
}

void Program::bind_all(std::span<Program> programs, const ExternalArrays& externals,
                       runtime::SetupResults* results) {
  SharedWeights all;
  for (const Program& program : programs) all.add(program.impl_->function(), program.weights());
  all.check(externals);
  bind_all_from(
      programs, [&](const Weight& weight) { return externals.at(weight.name); }, results);
  for (Program& program : programs) program.impl_->externals = externals;
}

void Program::bind_all_from(std::span<Program> programs, const WeightSource& source,
                            runtime::SetupResults* results) {
  SharedWeights all;
  for (const Program& program : programs) all.add(program.impl_->function(), program.weights());
  runtime::SetupResults shared;
  for (Program& program : programs) {
    program.bind_from(source, results == nullptr ? &shared : results);
  }
}

void Program::bind_from(const WeightSource& source, runtime::SetupResults* shared) {
  const NamedSource named = by_name(impl_->function(), weights(), source);
  if (impl_->executor != nullptr) {
    const std::vector<abi::External>& wanted = impl_->module->externals;
    impl_->executor->bind_from([&](size_t i) { return named(wanted[i].name); }, shared);
  } else {
    ExternalArrays all;
    for (const Weight& weight : weights()) all[weight.name] = named(weight.name);
    impl_->interpreted->bind(std::move(all));
  }
  impl_->externals.clear();  // of an earlier bind()
  impl_->bound = true;
}

namespace {

// A type of its own, for Reused: the caller's list of results may be a reused one too.
struct Arguments {
  std::vector<Array> arrays;
  void clear() { arrays.clear(); }
};

}  // namespace

void Program::call(const Leaves& call, std::vector<Array>& results) const {
  const Reused<Arguments> arguments;
  signature().check(call, (*arguments).arrays);
  impl_->run((*arguments).arrays, results);
}

std::vector<Array> Program::execute_raw(std::span<const Array> arguments) const {
  signature().check_raw(arguments);
  std::vector<Array> results;
  impl_->run(arguments, results);
  return results;
}

std::string Program::str() const {
  std::string weights_text;
  if (!weights().empty()) {
    weights_text =
        fmt::format(", {} weights {}", weights().size(), bound() ? "bound" : "not bound");
  }
  return fmt::format("{}{}, {}{}", impl_->function(), signature().str(), level(), weights_text);
}

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.str(); }

}  // namespace tenon::program
