#include "tenon/frontend/trace.h"

#include <mutex>
#include <utility>

#include "tenon/frontend/index.h"
#include "tenon/frontend/layer.h"
#include "tenon/ir/op_def.h"
#include "tenon/ops/ops.h"

namespace tenon {
namespace {

thread_local TracePtr current_trace;

std::string made_at(const ir::Value& value) {
  const std::string place = value ? str(value.node->location) : "";
  return place.empty() ? "" : ", made at " + place;
}

[[noreturn]] void refuse(std::string_view op, const std::string& what, const char* label, Here at,
                         const char* hint) {
  throw TraceError(fmt::format("{}: {}", op, what),
                   {.label = label, .location = str(location_of(at)), .hint = hint});
}

[[noreturn]] void refuse_escaped(std::string_view op, const TensorState& state, Here at) {
  refuse(op,
         fmt::format("the tensor belongs to {}, whose tracing has ended{}", state.trace->name(),
                     made_at(state.value)),
         "trace_escaped", at, "return it from the function and use the program's result");
}

[[noreturn]] void refuse_foreign(std::string_view op, const TensorState& state, const Trace* here,
                                 Here at) {
  const std::string where =
      here == nullptr ? "no function is being traced on this thread" : "not to " + here->name();
  refuse(op,
         fmt::format("the tensor belongs to {}, which is being traced; {}{}", state.trace->name(),
                     where, made_at(state.value)),
         "trace_foreign", at, "pass it as an argument");
}

}  // namespace

// --- states ---

ir::TensorType TensorState::type() const {
  if (layout != nullptr) return {layout->dtype(), layout->shape()};
  if (donated != nullptr) return donated->type();
  if (cell != nullptr) return cell->value.type();
  if (value) return value.type();
  return {array.dtype(), Shape(array.dims().begin(), array.dims().end())};
}

ir::Value TensorState::now() {
  static std::mutex making;
  if (cell != nullptr) return cell->value;
  if (trace != nullptr) return value;
  std::lock_guard lock(making);
  if (!value) value = ir::make_constant(array.to_literal());
  return value;
}

// --- traces ---

Trace::Scope::Scope(std::string name, Kind kind)
    : trace_(std::make_shared<Trace>(std::move(name), kind, current_trace)) {
  current_trace = trace_;
}

Trace::Scope::~Scope() {
  trace_->open_ = false;
  trace_->keyed_bodies.clear();  // their tensors hold this trace
  current_trace = trace_->outer_;
}

const TracePtr& Trace::current() { return current_trace; }

Tensor Trace::parameter(const ir::TensorType& type, const std::string& name, bool writable) {
  auto state = std::make_shared<TensorState>();
  state->value = ir::make_parameter(type, name);
  state->trace = shared_from_this();
  state->argument = name;
  if (writable) {
    state->cell = std::make_shared<BufferCell>();
    state->cell->value = state->value;
    state->cell->param = static_cast<uint32_t>(params_.size());
  }
  params_.push_back(state->value);
  names_.push_back(name);
  writable_.push_back(writable);
  cells_.push_back(state->cell);
  return Tensor(std::move(state));
}

ir::Value Trace::use(const Tensor& tensor, std::string_view op, Here at) {
  TensorState& state = *tensor.state();
  if (state.trace == nullptr) return embed(tensor);
  if (!state.trace->open()) refuse_escaped(op, state, at);
  if (state.trace.get() == this) return state.now();
  return capture_outer(tensor, op, at);
}

ir::Value Trace::capture_outer(const Tensor& tensor, std::string_view op, Here at) {
  TensorState& state = *tensor.state();
  if (kind_ != Kind::kBody || outer_ == nullptr) refuse_foreign(op, state, this, at);
  const ir::Value outside = outer_->use(tensor, op, at);
  auto known = captures_.find(outside);
  if (known != captures_.end()) return known->second;
  const ir::Value inside =
      ir::make_parameter(outside.type(), fmt::format("captured{}", captured_.size()));
  params_.push_back(inside);
  names_.push_back(inside.node->attrs.s("name"));
  writable_.push_back(false);
  cells_.push_back(nullptr);
  auto held = std::make_shared<TensorState>();
  held->value = outside;
  held->trace = outer_;
  captured_.push_back(Tensor(std::move(held)));
  captures_[outside] = inside;
  return inside;
}

// Memory that others may change is copied: a program does not see later changes.
ir::Value Trace::embed(const Tensor& tensor) {
  const auto& state = tensor.state();
  evaluate({state.get()});
  if (!state->borrowed) {
    state->captured = true;
    return state->now();
  }
  auto [it, inserted] = copies_.try_emplace(state.get(), tensor, ir::Value());
  if (inserted) {
    it->second.second = ir::make_constant(state->array.copy().to_literal());
  }
  return it->second.second;
}

ir::GraphPtr Trace::finish(std::vector<ir::Value> results, std::vector<std::string> result_names) {
  ir::Graph graph;
  graph.name = name_;
  graph.params = params_;
  graph.param_names = names_;
  graph.writable = writable_;
  graph.results = std::move(results);
  graph.result_names = std::move(result_names);
  for (const auto& cell : cells_) {
    if (cell != nullptr && cell->written) graph.updates.push_back({cell->param, cell->value});
  }
  return std::make_shared<const ir::Graph>(std::move(graph));
}

Trace& Trace::program() {
  Trace* trace = this;
  while (trace->kind_ == Kind::kBody && trace->outer_ != nullptr) trace = trace->outer_.get();
  return *trace;
}

std::string current_trace_name() { return current_trace == nullptr ? "" : current_trace->name(); }

// --- operands ---

ir::Value resolve(const Tensor& tensor, std::string_view op, Here at) {
  if (!tensor.defined()) {
    throw TypeError(fmt::format("{}: the tensor has no value yet", op),
                    {.label = "operand_c1", .location = str(location_of(at))});
  }
  TensorState& state = *tensor.state();
  if (state.layout != nullptr) {
    throw TypeError(
        fmt::format("{}: {} is a declaration and has no value", op, state.layout->str()),
        {.label = "operand_c2",
         .location = str(location_of(at)),
         .hint = "give it to compile(fn) or stage(fn); inside fn it is a tensor"});
  }
  refuse_donated(state, op, at);
  if (current_trace != nullptr) return current_trace->use(tensor, op, at);
  if (state.trace == nullptr) return state.now();
  if (!state.trace->open()) refuse_escaped(op, state, at);
  refuse_foreign(op, state, nullptr, at);
}

void refuse_donated(const TensorState& state, std::string_view op, Here at) {
  if (state.donated == nullptr) return;
  throw ValueError(fmt::format("{}: the tensor {} was donated to {}, a result has its memory", op,
                               brief(state.donated->type()), *state.donated->to),
                   {.label = "donate_c4",
                    .location = str(location_of(at)),
                    .hint = "use the result, or compile without donate"});
}

void refuse_traced(const Tensor& tensor, std::string_view op) {
  if (!tensor.is_traced()) return;
  TensorState& state = *tensor.state();
  const ir::Value value = state.now();
  const bool branch = op == "branch";
  const std::string what =
      state.trace->open()
          ? fmt::format("has no value while {} is traced", state.trace->name())
          : fmt::format("belongs to {}, whose tracing has ended", state.trace->name());
  throw TraceError(
      fmt::format("{}: the tensor {} {}", branch ? "branch on a traced value" : op,
                  brief(value.type()), what),
      {.label = branch                ? "trace_branch"
                : state.trace->open() ? "trace_value"
                                      : "trace_escaped",
       .location = value.node->location == nullptr ? "argument " + state.argument
                                                   : str(value.node->location),
       .hint = branch                ? "use where(condition, a, b), which computes both sides"
               : state.trace->open() ? "return the tensor and read it outside"
                                     : "return it from the function and use the program's result"});
}

Tensor wrap(ir::Value value) {
  auto state = std::make_shared<TensorState>();
  state->value = std::move(value);
  state->trace = current_trace;
  return Tensor(std::move(state));
}

namespace {

DType weak_dtype(Operand::Kind kind, std::optional<DType> beside) {
  switch (kind) {
    case Operand::Kind::kBool: return beside.value_or(DType::kBool);
    case Operand::Kind::kFloat:
      return beside && (is_float(*beside) || is_complex(*beside)) ? *beside : DType::kF32;
    default: return beside && *beside != DType::kBool ? *beside : DType::kI64;
  }
}

Literal weak_literal(const Operand& operand, DType dtype) {
  if (operand.kind == Operand::Kind::kFloat) return Literal::scalar(dtype, operand.real);
  if (operand.kind != Operand::Kind::kUInt) return Literal::scalar_int(dtype, operand.integer);
  if (dtype == DType::kU64) {
    Literal value(dtype, {});
    value.as_mutable<int64_t>()[0] = operand.integer;
    return value;
  }
  const auto number = static_cast<uint64_t>(operand.integer);
  const Literal value = Literal::scalar(dtype, static_cast<double>(number));
  if (!is_float(dtype) || value.get_double(0) != static_cast<double>(number) ||
      static_cast<uint64_t>(value.get_double(0)) != number) {
    throw ValueError(fmt::format("scalar: {} has no {} value", number, name(dtype)),
                     {.label = "scalar_range"});
  }
  return value;
}

ir::Value weak_value(std::string_view op, const Operand& operand, std::optional<DType> beside) {
  const ir::LocationPtr location = location_of(operand.at);
  const DType dtype = weak_dtype(operand.kind, beside);
  if (operand.kind == Operand::Kind::kSize) return ops::size({operand.size}, dtype, location);
  try {
    return ir::make_constant(weak_literal(operand, dtype), location);
  } catch (const ValueError& error) {
    const std::string_view text = error.message();
    const size_t colon = text.find(": ");
    throw ValueError(fmt::format("{}{}", op, text.substr(colon)),
                     {.label = error.parts().label,
                      .location = str(location),
                      .hint = "cast the tensor to a dtype that holds the number"});
  }
}

}  // namespace

Call::Call(std::string_view op, std::initializer_list<const Operand*> operands,
           std::optional<DType> beside)
    : trace_(current_trace), location_(location_of((*operands.begin())->at)) {
  for (const Operand* operand : operands) {
    if (operand->kind != Operand::Kind::kTensor) {
      values_.emplace_back();
      continue;
    }
    values_.push_back(resolve(operand->tensor, op, operand->at));
    const DType dtype = values_.back().dtype();
    beside = beside ? promote(*beside, dtype) : dtype;
  }
  size_t i = 0;
  // Without a tensor the strongest number decides.
  std::optional<DType> alone = beside;
  for (const Operand* operand : operands) {
    if (beside) break;
    const DType dtype = weak_dtype(operand->kind, std::nullopt);
    alone = alone ? promote(*alone, dtype) : dtype;
  }
  for (const Operand* operand : operands) {
    if (!values_[i]) values_[i] = weak_value(op, *operand, alone);
    ++i;
  }
}

Call::Call(std::string_view op, const std::vector<Tensor>& tensors, Here at)
    : trace_(current_trace), location_(location_of(at)) {
  for (const Tensor& tensor : tensors) values_.push_back(resolve(tensor, op, at));
}

Tensor Call::result(ir::Value value) const { return wrap(std::move(value)); }

std::vector<Tensor> Call::results(const std::vector<ir::Value>& values) const {
  std::vector<Tensor> list;
  for (const ir::Value& value : values) list.push_back(wrap(value));
  return list;
}

}  // namespace tenon
