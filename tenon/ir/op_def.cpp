#include "tenon/ir/op_def.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace tenon::ir {

bool contains(DTypeClass cls, DType dtype) {
  switch (cls) {
    case DTypeClass::kAny: return true;
    case DTypeClass::kArithmetic: return dtype != DType::kBool;
    case DTypeClass::kInexact: return is_float(dtype) || is_complex(dtype);
    case DTypeClass::kNumeric: return is_integer(dtype) || is_float(dtype);
    case DTypeClass::kReal: return !is_complex(dtype);
    case DTypeClass::kFloat: return is_float(dtype);
    case DTypeClass::kInteger: return is_integer(dtype);
    case DTypeClass::kIntegerBool: return is_integer(dtype) || dtype == DType::kBool;
    case DTypeClass::kBool: return dtype == DType::kBool;
  }
  return false;
}

std::string_view name(DTypeClass cls) {
  switch (cls) {
    case DTypeClass::kAny: return "any dtype";
    case DTypeClass::kArithmetic: return "any dtype but bool";
    case DTypeClass::kInexact: return "a float dtype or c64";
    case DTypeClass::kNumeric: return "an integer or float dtype";
    case DTypeClass::kReal: return "a real dtype";
    case DTypeClass::kFloat: return "a float dtype";
    case DTypeClass::kInteger: return "an integer dtype";
    case DTypeClass::kIntegerBool: return "an integer dtype or bool";
    case DTypeClass::kBool: return "bool";
  }
  return "";
}

namespace {

std::vector<TensorType> declared_infer(const InferArgs& args) {
  return {{args.attrs.dtype("dtype"), args.attrs.shape("shape")}};
}

std::vector<TensorType> constant_infer(const InferArgs& args) {
  const Literal& value = args.attrs.get<Literal>("value");
  return {{value.dtype(), Shape(value.dims().begin(), value.dims().end())}};
}

std::vector<Literal> constant_eval(const EvalArgs& args) {
  return {args.attrs.get<Literal>("value")};
}

std::vector<TensorType> call_infer(const InferArgs& args) {
  const Graph& callee = *args.attrs.get<GraphPtr>("callee");
  if (args.in.size() != callee.params.size()) {
    throw TypeError(fmt::format("call: @{} takes {} operands, got {}", callee.name,
                                callee.params.size(), args.in.size()),
                    {.label = "call_c1"});
  }
  for (size_t i = 0; i < args.in.size(); ++i) {
    const TensorType& wanted = callee.params[i].type();
    if (args.in[i] == wanted) continue;
    throw TypeError(fmt::format("call: operand {} of @{} is {}, the body takes {}", i, callee.name,
                                brief(args.in[i]), brief(wanted)),
                    {.label = "call_c2"});
  }
  std::vector<TensorType> types;
  for (const Value& value : callee.outputs()) types.push_back(value.type());
  return types;
}

class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  const OpDef* find(std::string_view name) const {
    std::lock_guard lock(mutex_);
    auto it = ops_.find(name);
    return it == ops_.end() ? nullptr : it->second;
  }
  void add(std::string_view name, const OpDef* op) {
    std::lock_guard lock(mutex_);
    auto [it, inserted] = ops_.emplace(name, op);
    check_internal(inserted || it->second == op, "two ops have one name");
  }
  std::vector<const OpDef*> all() const {
    std::lock_guard lock(mutex_);
    std::vector<const OpDef*> ops;
    for (const auto& item : ops_) ops.push_back(item.second);
    return ops;
  }

 private:
  // Spelled out: the table may be asked for before the definitions below are initialised.
  Registry()
      : ops_{{"parameter", &kParameter},
             {"constant", &kConstant},
             {"constant_external", &kConstantExternal},
             {"call", &kCall}} {}
  mutable std::mutex mutex_;
  std::map<std::string_view, const OpDef*> ops_;
};

Attrs complete_attrs(const OpDef& op, Attrs attrs) {
  for (const auto& [name, value] : attrs.items()) {
    auto it = std::find_if(op.attrs.begin(), op.attrs.end(),
                           [&name = name](const AttrSpec& spec) { return spec.name == name; });
    if (it == op.attrs.end()) {
      throw InternalError(fmt::format("internal: {} has no attribute {}", op.name, name));
    }
    if (it->default_value.index() != value.index()) {
      throw InternalError(
          fmt::format("internal: attribute {} of {} is of another kind", name, op.name));
    }
  }
  for (const AttrSpec& spec : op.attrs) {
    if (attrs.has(spec.name)) continue;
    if (spec.required) {
      throw InternalError(fmt::format("internal: {} needs the attribute {}", op.name, spec.name));
    }
    attrs.set(std::string(spec.name), spec.default_value);
  }
  return attrs;
}

void check_operands(const OpDef& op, const std::vector<Value>& operands) {
  const auto n = static_cast<int>(operands.size());
  if (n < op.min_operands || (op.max_operands >= 0 && n > op.max_operands)) {
    const std::string wanted =
        op.max_operands == op.min_operands ? fmt::format("{}", op.min_operands)
        : op.max_operands < 0              ? fmt::format("at least {}", op.min_operands)
                              : fmt::format("{} to {}", op.min_operands, op.max_operands);
    throw TypeError(fmt::format("{}: takes {} operand{}, got {}", op.name, wanted,
                                wanted == "1" || wanted == "at least 1" ? "" : "s", n),
                    {.label = fmt::format("{}_operands", op.name)});
  }
  for (const Value& operand : operands) {
    check_internal(operand.node != nullptr && operand.index < operand.node->types.size(),
                   "an operand is not a result of a node");
  }
}

std::vector<TensorType> infer_types(const OpDef& op, const std::vector<Value>& operands,
                                    const Attrs& attrs) {
  std::vector<TensorType> in;
  in.reserve(operands.size());
  for (const Value& operand : operands) in.push_back(operand.type());
  return op.infer({op.name, in, attrs});
}

uint64_t next_node_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

const OpDef* find_op(std::string_view name) { return Registry::instance().find(name); }
void register_op(const OpDef* op) { Registry::instance().add(op->name, op); }
std::vector<const OpDef*> all_ops() { return Registry::instance().all(); }

NodePtr make_node(const OpDef& op, std::vector<Value> operands, Attrs attrs, LocationPtr location) {
  auto node = std::make_shared<Node>();
  node->op = &op;
  node->attrs = complete_attrs(op, std::move(attrs));
  try {
    check_operands(op, operands);
    node->types = infer_types(op, operands, node->attrs);
  } catch (const Error& error) {
    if (location == nullptr || !error.parts().location.empty()) throw;
    ErrorParts parts = error.parts();
    parts.location = str(location);
    throw_error(error.kind(), error.message(), std::move(parts));
  }
  node->operands = std::move(operands);
  node->location = std::move(location);
  node->id = next_node_id();
  return node;
}

Value make(const OpDef& op, std::vector<Value> operands, Attrs attrs, LocationPtr location) {
  NodePtr node = make_node(op, std::move(operands), std::move(attrs), std::move(location));
  check_internal(node->types.size() == 1, "make() takes ops with one result");
  return {std::move(node), 0};
}

Value make_parameter(TensorType type, std::string name, LocationPtr location) {
  Attrs attrs{{"name", std::move(name)}, {"dtype", type.dtype}, {"shape", std::move(type.shape)}};
  return make(kParameter, {}, std::move(attrs), std::move(location));
}

Value make_constant(Literal value, LocationPtr location) {
  return make(kConstant, {}, {{"value", std::move(value)}}, std::move(location));
}

std::vector<Value> make_call(GraphPtr callee, std::vector<Value> operands, std::string prefix,
                             LocationPtr location) {
  Attrs attrs{{"callee", std::move(callee)}, {"prefix", std::move(prefix)}};
  NodePtr node = make_node(kCall, std::move(operands), std::move(attrs), std::move(location));
  std::vector<Value> results;
  for (uint32_t i = 0; i < node->types.size(); ++i) results.push_back({node, i});
  return results;
}

const OpDef kParameter{
    .name = "parameter",
    .doc = "An argument of the graph.",
    .traits = kLeaf | kStructural,
    .attrs = {{"dtype", DType::kF32, true}, {"name", std::string()}, {"shape", Shape(), true}},
    .infer = declared_infer,
};

const OpDef kConstant{
    .name = "constant",
    .doc = "A tensor whose value is part of the graph.",
    .traits = kLeaf,
    .attrs = {{"value", Literal(), true}},
    .infer = constant_infer,
    .eval = constant_eval,
};

const OpDef kConstantExternal{
    .name = "constant_external",
    .doc = "A tensor bound by name when the program is compiled, loaded or called.",
    .traits = kLeaf | kStructural,
    .attrs = {{"dtype", DType::kF32, true},
              {"name", std::string(), true},
              {"relative", false},
              {"shape", Shape(), true}},
    .infer = declared_infer,
};

const OpDef kCall{
    .name = "call",
    .doc = "Applies a graph to operands; relative external names inside get the prefix.",
    .traits = kStructural,
    .max_operands = -1,
    .attrs = {{"callee", GraphPtr(), true}, {"prefix", std::string()}},
    .infer = call_infer,
};

}  // namespace tenon::ir
