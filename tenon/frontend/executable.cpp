#include "tenon/frontend/executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tenon/frontend/donation.h"
#include "tenon/frontend/engine.h"
#include "tenon/frontend/layer.h"
#include "tenon/program/artifact.h"

namespace tenon {
namespace {

runtime::Array array_of(const std::string& function, const std::string& name,
                        const Tensor& tensor) {
  const char* is = !tensor.defined()    ? "a tensor without a value"
                   : tensor.is_layout() ? "a declaration"
                   : tensor.is_traced() ? "a traced tensor"
                                        : nullptr;
  if (is != nullptr) {
    throw TypeError(fmt::format("{}: weight {}: expected a value, got {}", function, name, is),
                    {.label = "weight_value"});
  }
  return tensor.array();
}

program::ExternalArrays arrays_of(const std::string& function, const Weights& weights) {
  program::ExternalArrays arrays;
  for (const auto& [name, tensor] : weights) arrays[name] = array_of(function, name, tensor);
  return arrays;
}

}  // namespace

void program::TensorLeaf<Tensor>::append(Leaves& call, const Tensor& leaf, bool written) {
  if (leaf.defined() && !leaf.is_layout() && !leaf.is_traced()) {
    call.tensor(written ? writable_array(leaf) : leaf.array());
  } else if (!leaf.defined()) {
    call.fixed(StaticView::none(), "Tensor without a value");
  } else {
    call.fixed(StaticView::none(), leaf.is_layout() ? "TensorLayout" : "traced Tensor");
  }
}

void CallLeaves::tensor(const Tensor& tensor) {
  tensors.push_back(&tensor);
  program::TensorLeaf<Tensor>::append(leaves, tensor, false);
}

void CallLeaves::tensor(const runtime::Array&) {
  leaves.fixed(program::StaticView::none(), "Array");
}

struct Executable::Impl {
  Staged staged;
  std::vector<program::Weight> weights;
  std::vector<Donation> donations;
  std::shared_ptr<const std::string> name;  // of the function, for tensors that outlive this
  std::unique_ptr<Engine> engine;
  bool complete = false;
};

Executable::Executable(Staged staged, const CompileOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->staged = std::move(staged);
  impl_->weights = program::externals_of(impl_->staged.graph);
  impl_->complete = impl_->weights.empty();
  impl_->name = std::make_shared<const std::string>(name());
  impl_->donations = match_donations(impl_->staged.signature, options.donate);
  std::vector<runtime::ArgumentSpec> specs = impl_->staged.signature.argument_specs();
  for (const Donation& donation : impl_->donations) specs[donation.argument].writable = true;
  impl_->engine = make_engine(donated_graph(impl_->staged.graph, impl_->donations), specs);
  if (!options.weights.empty()) bind(options.weights);
}

Executable::~Executable() = default;

void Executable::bind(const Weights& weights) {
  const program::ExternalArrays arrays = arrays_of(name(), weights);
  program::check_weights(name(), impl_->weights, arrays);
  impl_->engine->bind(arrays);
  impl_->complete = true;
}

void Executable::bind_from(const WeightSource& source, runtime::SetupResults* shared) {
  const program::WeightSource arrays = [&](const program::Weight& weight) {
    return array_of(name(), weight.name, source(weight));
  };
  impl_->engine->bind_from(program::by_name(name(), impl_->weights, arrays), shared);
  impl_->complete = true;
}

void bind_weights_from(const std::vector<std::shared_ptr<Executable>>& programs,
                       const WeightSource& source) {
  program::SharedWeights all;
  for (const auto& program : programs) all.add(program->name(), program->weights());
  runtime::SetupResults shared;
  for (const auto& program : programs) program->bind_from(source, &shared);
}

void bind_weights(const std::vector<std::shared_ptr<Executable>>& programs,
                  const Weights& weights) {
  program::SharedWeights all;
  for (const auto& program : programs) all.add(program->name(), program->weights());
  all.check(arrays_of(all.functions, weights));
  bind_weights_from(programs,
                    [&](const program::Weight& weight) { return weights.at(weight.name); });
}

const std::vector<program::Weight>& Executable::weights() const { return impl_->weights; }
const Staged& Executable::staged() const { return impl_->staged; }

void Executable::call(CallLeaves& call) const {
  std::vector<runtime::Array>& arguments = call.arguments;
  arguments.clear();
  const program::Signature& signature = staged().signature;
  signature.check(call.leaves, arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (signature.tensors[i].writable) arguments[i] = writable_array(*call.tensors[i]);
  }
  check_bound();
  donate_arguments(call, arguments);
  run(arguments, call.results);
}

void Executable::donate_arguments(const CallLeaves& call,
                                  std::vector<runtime::Array>& arguments) const {
  if (impl_->donations.empty()) return;
  const program::Signature& signature = staged().signature;
  const std::vector<Donation>& donations = impl_->donations;
  for (auto donation = donations.begin(); donation != donations.end(); ++donation) {
    const uint32_t at = donation->argument;
    for (uint32_t i = 0; i < signature.tensors.size(); ++i) {
      const auto is_it = [i](const Donation& earlier) { return earlier.argument == i; };
      const bool written =
          signature.tensors[i].writable || std::any_of(donations.begin(), donation, is_it);
      if (!written || call.tensors[i]->state() != call.tensors[at]->state()) continue;
      const std::vector<std::string> routes = signature.tensor_routes();
      throw ValueError(fmt::format("{}: donated argument {} is the tensor of argument {} too, "
                                   "which is written",
                                   name(), routes[at], routes[i]),
                       {.label = "argument_overlap"});
    }
  }
  for (const Donation& donation : donations) {
    arguments[donation.argument] = donate(*call.tensors[donation.argument], impl_->name);
  }
}

std::vector<runtime::Array> Executable::execute_raw(
    const std::vector<runtime::Array>& arguments) const {
  staged().signature.check_raw(arguments);
  check_bound();
  std::vector<runtime::Array> own = arguments;
  for (const Donation& donation : impl_->donations) {
    own[donation.argument] = arguments[donation.argument].copy();
  }
  std::vector<runtime::Array> results;
  run(own, results);
  return results;
}

void Executable::check_bound() const {
  if (!impl_->complete) program::check_weights(name(), impl_->weights, {});
}

void Executable::run(std::span<const runtime::Array> arguments,
                     std::vector<runtime::Array>& results) const {
  impl_->engine->run(arguments, results);
  for (const Donation& donation : impl_->donations) {  // sorted by result
    results.insert(results.begin() + donation.result, arguments[donation.argument]);
  }
}

std::string Executable::str() const {
  std::string text = "compiled " + name() + staged().signature.str();
  if (impl_->weights.empty()) return text;
  return text + fmt::format(", {} weights {}", impl_->weights.size(),
                            impl_->complete ? "bound" : "not bound");
}

namespace {

program::ProgramData program_data(const Staged& staged, const std::vector<std::string>& levels) {
  compiler::Options options;
  options.levels = levels;
  compiler::Compiled compiled = compiler::compile(staged.graph, options);
  return {staged.signature, staged.graph, std::move(compiled.module), std::move(compiled.graphs)};
}

}  // namespace

void Executable::save(const std::string& path, const std::vector<std::string>& levels) const {
  const program::ProgramData data = program_data(staged(), levels);
  program::save_artifact(path, {&data, 1});
}

void save(const std::string& path, const std::vector<std::shared_ptr<const Executable>>& programs,
          const std::vector<std::string>& levels) {
  std::vector<program::ProgramData> all;
  for (const auto& program : programs) all.push_back(program_data(program->staged(), levels));
  program::save_artifact(path, all);
}

std::string Executable::explain() const {
  return impl_->engine->explain(name() + staged().signature.str(), staged().trace_ms);
}

// --- compiling switched off ---

namespace {
thread_local int disabled_scopes = 0;
}

bool compile_disabled() {
  static const bool by_environment = [] {
    const char* text = std::getenv("TENON_DISABLE_COMPILE");
    return text != nullptr && *text != '\0' && std::string_view(text) != "0";
  }();
  return by_environment || disabled_scopes > 0;
}

DisableCompile::DisableCompile() { ++disabled_scopes; }
DisableCompile::~DisableCompile() { --disabled_scopes; }

}  // namespace tenon
