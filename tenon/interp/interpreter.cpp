#include "tenon/interp/interpreter.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "tenon/base/error.h"

namespace tenon::interp {
namespace {

using Symbols = std::map<std::string, int64_t, std::less<>>;

std::vector<int64_t> numbers(const Shape& shape, const Dim::Lookup& symbols) {
  std::vector<int64_t> dims;
  dims.reserve(shape.size());
  for (const Dim& dim : shape) dims.push_back(dim.is_static() ? dim.value() : dim.eval(symbols));
  return dims;
}

ir::Attrs numeric_attrs(const ir::Attrs& attrs, const Dim::Lookup& symbols) {
  ir::Attrs out = attrs;
  for (const auto& [name, value] : attrs.items()) {
    const auto* shape = std::get_if<Shape>(&value);
    if (shape == nullptr || is_static(*shape)) continue;
    const std::vector<int64_t> dims = numbers(*shape, symbols);
    out.set(name, Shape(dims.begin(), dims.end()));
  }
  return out;
}

[[noreturn]] void differ(const ir::Graph& graph, size_t i, const Literal& got) {
  throw ShapeError(
      fmt::format("{}: argument {}: expected {}, got {}", graph.name, graph.param_names[i],
                  brief(graph.params[i].type()), describe(got.dtype(), got.dims())),
      {.label = "argument_dim"});
}

Symbols bind(const ir::Graph& graph, std::span<const Literal> arguments) {
  Symbols symbols;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::TensorType& type = graph.params[i].type();
    const Literal& got = arguments[i];
    if (got.dtype() != type.dtype || got.rank() != type.rank()) differ(graph, i, got);
    for (size_t axis = 0; axis < type.rank(); ++axis) {
      if (!type.shape[axis].is_symbol()) continue;
      symbols.emplace(type.shape[axis].symbol(), got.dims()[axis]);
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Shape& shape = graph.params[i].shape();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const std::optional<AffineDim> form = as_affine(shape[axis]);
      if (!form) continue;
      symbols.emplace(form->name, (arguments[i].dims()[axis] - form->offset) / form->scale);
    }
  }
  const auto lookup = [&symbols](std::string_view name) -> std::optional<int64_t> {
    auto it = symbols.find(name);
    if (it == symbols.end()) return std::nullopt;
    return it->second;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (numbers(graph.params[i].type().shape, lookup) != arguments[i].dims()) {
      differ(graph, i, arguments[i]);
    }
  }
  return symbols;
}

// Raised when a run would take longer than it may.
struct TooLong {};

// Element operations of a node, roughly.
int64_t work_of(const ir::Node& node, std::span<const Literal> operands,
                const Dim::Lookup& symbols) {
  int64_t work = 1;
  for (const ir::TensorType& type : node.types) {
    int64_t count = 1;
    for (int64_t dim : numbers(type.shape, symbols)) count *= dim;
    work = std::max(work, count);
  }
  for (const Literal& operand : operands) work = std::max(work, operand.count());
  const bool product = node.op->name.starts_with("matmul") && operands[0].rank() > 0;
  return product ? work * std::max<int64_t>(operands[0].dims().back(), 1) : work;
}

class Run {
 public:
  // `allowance`: element operations until TooLong.
  Run(const Dim::Lookup& symbols, const Externals& externals,
      int64_t allowance = std::numeric_limits<int64_t>::max())
      : symbols_(symbols), externals_(externals), allowance_(allowance) {}

  std::vector<Literal> graph(const ir::Graph& graph, std::span<const Literal> arguments,
                             const std::string& prefix) {
    std::unordered_map<ir::Value, Literal, ir::ValueHash> values;
    const std::vector<ir::NodePtr> nodes = graph.nodes();
    std::unordered_map<ir::Value, int, ir::ValueHash> uses;
    for (const ir::NodePtr& node : nodes) {
      for (const ir::Value& operand : node->operands) ++uses[operand];
    }
    const std::vector<ir::Value> outputs = graph.outputs();
    for (const ir::Value& value : outputs) ++uses[value];
    for (size_t i = 0; i < arguments.size(); ++i) values[graph.params[i]] = arguments[i];
    for (const ir::NodePtr& node : nodes) {
      if (node->op == &ir::kParameter) continue;
      std::vector<Literal> results = this->node(*node, values, prefix);
      for (uint32_t i = 0; i < results.size(); ++i) {
        values[{node, i}] = std::move(results[i]);
      }
      for (const ir::Value& operand : node->operands) {
        if (--uses[operand] == 0) values.erase(operand);
      }
    }
    std::vector<Literal> out;
    for (const ir::Value& value : outputs) out.push_back(values.at(value));
    return out;
  }

 private:
  std::vector<Literal> node(const ir::Node& node,
                            const std::unordered_map<ir::Value, Literal, ir::ValueHash>& values,
                            const std::string& prefix) {
    if (node.op == &ir::kConstantExternal) return {external(node, prefix)};
    std::vector<Literal> operands;
    for (const ir::Value& operand : node.operands) operands.push_back(values.at(operand));
    if (node.op == &ir::kCall) {
      const auto& callee = node.attrs.get<ir::GraphPtr>("callee");
      return graph(*callee, operands, prefix + node.attrs.s("prefix"));
    }
    const int64_t work = work_of(node, operands, symbols_);
    if (work > allowance_) throw TooLong();
    allowance_ -= work;
    return evaluate(node, operands, symbols_);
  }

  Literal external(const ir::Node& node, const std::string& prefix) {
    const std::string& own = node.attrs.s("name");
    const std::string name = node.attrs.b("relative") ? prefix + own : own;
    if (!externals_) {
      throw KeyError(fmt::format("the external constant \"{}\" is not given", name),
                     {.label = "external_missing"});
    }
    Literal value = externals_(name);
    const ir::TensorType& type = node.types[0];
    if (value.dtype() == type.dtype && value.dims() == numbers(type.shape, symbols_)) return value;
    throw ValueError(fmt::format("the external constant \"{}\" is {}, declared {}", name,
                                 describe(value.dtype(), value.dims()), brief(type)),
                     {.label = "external_type"});
  }

  const Dim::Lookup& symbols_;
  const Externals& externals_;
  int64_t allowance_;
};

Dim::Lookup lookup_of(const Symbols& symbols) {
  return [&symbols](std::string_view name) -> std::optional<int64_t> {
    auto it = symbols.find(name);
    if (it == symbols.end()) return std::nullopt;
    return it->second;
  };
}

}  // namespace

std::vector<Literal> run(const ir::Graph& graph, std::span<const Literal> arguments,
                         const Externals& externals) {
  if (arguments.size() != graph.params.size()) {
    throw ValueError(fmt::format("{}: expected {} arguments, got {}", graph.name,
                                 graph.params.size(), arguments.size()),
                     {.label = "argument_count"});
  }
  const Symbols symbols = bind(graph, arguments);
  const Dim::Lookup lookup = lookup_of(symbols);
  return Run(lookup, externals).graph(graph, arguments, "");
}

void explain_failure(const Error& failed, const ir::Graph& graph,
                     std::span<const Literal> arguments, const Externals& externals) {
  const std::string& label = failed.parts().label;
  if (label != "index_range" && label != "reduction_empty" && label != "sort_c2") return;
  constexpr int64_t kAllowance = int64_t{1} << 28;
  const Symbols symbols = bind(graph, arguments);
  const Dim::Lookup lookup = lookup_of(symbols);
  try {
    Run(lookup, externals, kAllowance).graph(graph, arguments, "");
  } catch (const TooLong&) {
  } catch (const KeyError& error) {
    if (error.parts().label != "external_missing") throw;
  }
}

std::vector<Literal> evaluate(const ir::Node& node, std::span<const Literal> operands,
                              const Dim::Lookup& symbols) {
  std::vector<ir::ConcreteType> out;
  for (const ir::TensorType& type : node.types) {
    out.push_back({type.dtype, numbers(type.shape, symbols)});
  }
  if (node.op->eval == nullptr) {
    throw InternalError(fmt::format("internal: {} has no reference evaluation", node.op->name));
  }
  try {
    return node.op->eval({numeric_attrs(node.attrs, symbols), operands, out});
  } catch (const Error& error) {
    if (!error.parts().location.empty() || node.location == nullptr) throw;
    ErrorParts parts = error.parts();
    parts.location = str(node.location);
    throw_error(error.kind(), error.message(), std::move(parts));
  }
}

}  // namespace tenon::interp
