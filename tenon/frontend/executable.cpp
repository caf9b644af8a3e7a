#include "tenon/frontend/executable.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tenon/frontend/engine.h"
#include "tenon/frontend/layer.h"
#include "tenon/ir/op_def.h"
#include "tenon/program/artifact.h"

namespace tenon {
namespace {

// Collects the externals of a body once for each prefix that it is called with.
class SlotCollector {
 public:
  void collect(const ir::Graph& graph, const std::string& prefix) {
    if (!seen_.insert({&graph, prefix}).second) return;
    for (const ir::NodePtr& node : graph.nodes()) {
      if (node->op == &ir::kCall) {
        collect(*node->attrs.get<ir::GraphPtr>("callee"), prefix + node->attrs.s("prefix"));
      } else if (node->op == &ir::kConstantExternal) {
        const std::string& own = node->attrs.s("name");
        add(node->attrs.b("relative") ? prefix + own : own, *node);
      }
    }
  }
  std::vector<ExternalSlot> slots() const {
    std::vector<ExternalSlot> list;
    for (const auto& [name, type] : types_) list.push_back({name, type});
    return list;
  }

 private:
  void add(const std::string& name, const ir::Node& node) {
    auto [it, inserted] = types_.emplace(name, node.types[0]);
    if (inserted || it->second == node.types[0]) return;
    throw ValueError(fmt::format("constant_external: \"{}\" is declared as {} and as {}", name,
                                 ir::brief(it->second), ir::brief(node.types[0])),
                     {.label = "external_c2", .location = str(node.location)});
  }
  std::set<std::pair<const ir::Graph*, std::string>> seen_;
  std::map<std::string, ir::TensorType> types_;
};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& name, const std::vector<ExternalSlot>& slots) {
  const ExternalSlot* best = nullptr;
  size_t distance = name.size() / 2 + 1;
  for (const ExternalSlot& slot : slots) {
    const size_t d = edit_distance(name, slot.name);
    if (d < distance) {
      distance = d;
      best = &slot;
    }
  }
  return best == nullptr ? "" : fmt::format("did you mean \"{}\"?", best->name);
}

bool fits(const TensorLayout& given, const ir::TensorType& wanted) {
  if (given.dtype() != wanted.dtype || given.rank() != wanted.rank()) return false;
  for (size_t i = 0; i < given.rank(); ++i) {
    if (wanted.shape[i].is_static() && wanted.shape[i] != given.shape()[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<ExternalSlot> external_slots(const ir::GraphPtr& graph) {
  SlotCollector collector;
  collector.collect(*graph, "");
  return collector.slots();
}

void check_weights(const std::string& program, const std::vector<ExternalSlot>& slots,
                   const Weights& weights) {
  std::string missing;
  for (const ExternalSlot& slot : slots) {
    auto it = weights.find(slot.name);
    if (it == weights.end()) {
      missing += (missing.empty() ? "" : ", ") + slot.name;
      continue;
    }
    const TensorLayout given = it->second.layout();
    if (fits(given, slot.type)) continue;
    throw ValueError(fmt::format("{}: weight {}: expected {}, got {}", program, slot.name,
                                 ir::brief(slot.type), ir::brief({given.dtype(), given.shape()})),
                     {.label = "weight_type"});
  }
  if (!missing.empty()) {
    throw KeyError(fmt::format("{}: missing weights: {}", program, missing),
                   {.label = "weight_missing"});
  }
  for (const auto& item : weights) {
    const bool used = std::any_of(slots.begin(), slots.end(), [&item](const ExternalSlot& slot) {
      return slot.name == item.first;
    });
    if (used) continue;
    throw KeyError(fmt::format("{}: the program reads no weight {}", program, item.first),
                   {.label = "weight_unused", .hint = nearest(item.first, slots)});
  }
}

void CallLeaves::tensor(const Tensor& tensor) {
  tensors.push_back(&tensor);
  if (tensor.defined() && !tensor.is_layout() && !tensor.is_traced()) {
    leaves.tensor(tensor.array());
  } else if (tensor.is_layout()) {
    leaves.fixed(program::StaticView::none(), "TensorLayout");
  } else if (tensor.is_traced()) {
    leaves.fixed(program::StaticView::none(), "traced Tensor");
  } else {
    leaves.fixed(program::StaticView::none(), "Tensor without a value");
  }
}

void CallLeaves::tensor(const runtime::Array&) {
  leaves.fixed(program::StaticView::none(), "Array");
}

struct Executable::Impl {
  Staged staged;
  std::vector<ExternalSlot> slots;
  std::unique_ptr<Engine> engine;
  bool complete = false;
};

Executable::Executable(Staged staged, const CompileOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->staged = std::move(staged);
  impl_->slots = external_slots(impl_->staged.graph);
  impl_->complete = impl_->slots.empty();
  impl_->engine = make_engine(impl_->staged.graph, impl_->staged.signature.argument_specs());
  if (!options.weights.empty()) bind(options.weights);
}

Executable::~Executable() = default;

void Executable::bind(const Weights& weights) {
  check_weights(name(), impl_->slots, weights);
  ArrayMap arrays;
  for (const auto& [weight, tensor] : weights) arrays[weight] = tensor.array();
  impl_->engine->bind(arrays);
  impl_->complete = true;
}

const std::vector<ExternalSlot>& Executable::weights() const { return impl_->slots; }
const Staged& Executable::staged() const { return impl_->staged; }

std::vector<runtime::Array> Executable::call(const CallLeaves& call) const {
  std::vector<runtime::Array> arguments;
  const program::Signature& signature = staged().signature;
  signature.check(call.leaves, arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (signature.tensors[i].writable) arguments[i] = writable_array(*call.tensors[i]);
  }
  return run(std::move(arguments));
}

std::vector<runtime::Array> Executable::execute_raw(
    const std::vector<runtime::Array>& arguments) const {
  staged().signature.check_raw(arguments);
  return run(arguments);
}

std::vector<runtime::Array> Executable::run(std::vector<runtime::Array> arguments) const {
  if (!impl_->complete) check_weights(name(), impl_->slots, {});
  return impl_->engine->run(std::move(arguments));
}

std::string Executable::str() const {
  std::string text = "compiled " + name() + staged().signature.str();
  if (impl_->slots.empty()) return text;
  return text + fmt::format(", {} weights {}", impl_->slots.size(),
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
