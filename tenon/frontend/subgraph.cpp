#include "tenon/frontend/subgraph.h"

#include "tenon/frontend/layer.h"
#include "tenon/ir/op_def.h"
#include "tenon/ir/text.h"

namespace tenon {
namespace {

// `name`, or name_1, name_2, … : the program's own name counts as taken.
std::string free_name(Trace& program, const std::string& name) {
  std::string text = name;
  for (int i = 1; text == program.name() || !program.body_names.insert(text).second; ++i) {
    text = fmt::format("{}_{}", name, i);
  }
  return text;
}

}  // namespace

Tensor constant_external(const std::string& name, const TensorLayout& layout, bool relative,
                         Here at) {
  const TracePtr& trace = Trace::current();
  const std::string place = ir::str(location_of(at));
  if (trace == nullptr) {
    throw TypeError(
        fmt::format("constant_external: \"{}\" needs a capture: compile or stage", name),
        {.label = "external_c1",
         .location = place,
         .hint = "outside a program a weight is an ordinary tensor"});
  }
  if (layout.writable()) {
    throw TypeError(fmt::format("constant_external: \"{}\" is declared as a buffer: weights are "
                                "read only",
                                name),
                    {.label = "external_c3", .location = place});
  }
  Trace& program = trace->program();
  const ir::TensorType type{layout.dtype(), layout.shape()};
  std::string whole = name;
  if (relative) {
    whole = program.inline_prefix + name;
  } else {
    auto [it, inserted] = program.externals.emplace(name, type);
    if (!inserted && it->second != type) {
      throw ValueError(fmt::format("constant_external: \"{}\" is declared as {} and as {}", name,
                                   ir::brief(it->second), ir::brief(type)),
                       {.label = "external_c2", .location = place});
    }
  }
  return wrap(ir::make(
      ir::kConstantExternal, {},
      {{"name", whole}, {"relative", relative}, {"dtype", type.dtype}, {"shape", type.shape}},
      location_of(at)));
}

SubgraphCall::SubgraphCall(const std::string& name, const SubgraphOptions& options,
                           TensorTree& arguments, const std::type_info& type, Here at)
    : options_(options),
      name_(name),
      arguments_(arguments),
      type_(type.name()),
      at_(at),
      caller_(Trace::current()) {
  if (caller_ == nullptr) {
    throw TypeError(fmt::format("as_subgraph({}) needs a capture: compile or stage", name),
                    {.label = "subgraph_c1", .hint = "call the function itself to run eagerly"});
  }
  Trace& program = caller_->program();
  inlined_ = !program.allow_subgraphs;
  if (inlined_) {
    outer_prefix_ = program.inline_prefix;
    program.inline_prefix += options.prefix;
    return;
  }
  for (Tensor* tensor : arguments.tensors) {
    operands_.push_back(*tensor);
    values_.push_back(resolve(*tensor, fmt::format("as_subgraph({})", name), at));
  }
}

SubgraphCall::~SubgraphCall() {
  if (inlined_) caller_->program().inline_prefix = outer_prefix_;
}

// Everything that a keyed body may depend on besides its code.
std::string SubgraphCall::shared_key() const {
  std::string text = fmt::format("{}\n{}\n{}\n", options_.key, name_, type_);
  for (const program::Token& token : arguments_.tokens) {
    text += fmt::format("{} {} {}\n", static_cast<int>(token.kind), token.count, token.text);
  }
  for (const program::StaticValue& value : arguments_.statics) {
    text += fmt::format("{} {} {} {}\n", static_cast<int>(value.kind), value.bits,
                        value.text.size(), value.text);
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const bool buffer = operands_[i].state()->cell != nullptr;
    text += fmt::format("{}{}\n", buffer ? "buffer " : "", ir::str(values_[i].type()));
  }
  return text;
}

std::shared_ptr<const void> SubgraphCall::known() const {
  if (options_.key.empty()) return nullptr;
  const auto& bodies = caller_->program().keyed_bodies;
  auto it = bodies.find(shared_key());
  if (it == bodies.end()) return nullptr;
  // A body that read a tensor of another trace around it cannot be shared by key.
  for (const Tensor& tensor : it->second.captured) {
    if (tensor.state()->trace != caller_) return nullptr;
  }
  const_cast<SubgraphCall*>(this)->body_ = it->second;
  return body_.result;
}

void SubgraphCall::begin() {
  scope_ = std::make_unique<Trace::Scope>(name_, Trace::Kind::kBody);
  const std::vector<std::string> routes = arguments_.routes();
  for (size_t i = 0; i < operands_.size(); ++i) {
    const bool writable = operands_[i].state()->cell != nullptr;
    *arguments_.tensors[i] =
        scope_->trace()->parameter(values_[i].type(), "arg" + routes[i], writable);
  }
}

void SubgraphCall::finish(TensorTree& result, std::shared_ptr<const void> kept) {
  std::vector<ir::Value> values;
  for (Tensor* tensor : result.tensors) {
    values.push_back(resolve(*tensor, fmt::format("as_subgraph({}): result", name_), at_));
  }
  const TracePtr trace = scope_->trace();
  ir::GraphPtr graph = trace->finish(std::move(values));
  scope_.reset();
  Trace& program = caller_->program();
  auto [it, inserted] = program.bodies.emplace(ir::canonical(graph), nullptr);
  if (inserted) {
    ir::Graph named = *graph;
    named.name = free_name(program, name_);
    it->second = std::make_shared<const ir::Graph>(std::move(named));
  }
  body_ = {it->second, trace->captured(), std::move(kept)};
  if (!options_.key.empty()) program.keyed_bodies[shared_key()] = body_;
}

void SubgraphCall::connect(TensorTree& result) {
  std::vector<ir::Value> operands = values_;
  for (const Tensor& tensor : body_.captured) operands.push_back(resolve(tensor, "call", at_));
  const std::vector<ir::Value> outputs =
      ir::make_call(body_.graph, std::move(operands), options_.prefix, location_of(at_));
  for (size_t i = 0; i < result.tensors.size(); ++i) *result.tensors[i] = wrap(outputs[i]);
  for (size_t i = 0; i < body_.graph->updates.size(); ++i) {
    BufferCell& cell = *operands_[body_.graph->updates[i].param].state()->cell;
    cell.value = outputs[result.tensors.size() + i];
    cell.written = true;
  }
}

}  // namespace tenon
