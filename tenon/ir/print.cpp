#include <bit>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/ir/literal_text.h"
#include "tenon/ir/op_def.h"
#include "tenon/ir/text.h"

namespace tenon::ir {
namespace {

bool is_identifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '$') return false;
  }
  return true;
}

std::string name_text(const std::string& name) { return is_identifier(name) ? name : quoted(name); }

// `name`, or `name_1`, `name_2`, … when it is taken.
std::string unique(const std::string& name, std::unordered_set<std::string>& taken) {
  std::string text = name;
  for (int i = 1; !taken.insert(text).second; ++i) text = fmt::format("{}_{}", name, i);
  return text;
}

// The type that a reader expects of an op on these operands: shapes broadcast, dtypes promoted.
std::optional<TensorType> expected_type(const std::vector<Value>& operands) {
  if (operands.empty()) return std::nullopt;
  TensorType type = operands[0].type();
  for (const Value& operand : operands) {
    const Shape& shape = operand.shape();
    if (operand.dtype() != type.dtype) type.dtype = promote(type.dtype, operand.dtype());
    if (shape.size() > type.shape.size()) {
      type.shape.insert(type.shape.begin(), shape.size() - type.shape.size(), Dim(1));
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim& dim = type.shape[type.shape.size() - shape.size() + i];
      if (dim == Dim(1)) {
        dim = shape[i];
      } else if (shape[i] != Dim(1) && shape[i] != dim) {
        return std::nullopt;
      }
    }
  }
  return type;
}

class Printer {
 public:
  Printer(const PrintOptions& options, bool canonical) : options_(options), canonical_(canonical) {}

  std::string module(const GraphPtr& graph) {
    out_ = options_.generic ? "\"tn.module\"() ({\n" : "tn.module {\n";
    for (const GraphPtr& body : reachable_graphs(graph)) {
      name_graph(*body);
      print_graph(*body);
    }
    out_ += options_.generic ? "}) : () -> ()\n" : "}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void name_graph(const Graph& graph) {
    graph_names_[&graph] =
        canonical_ ? fmt::format("g{}", graph_names_.size()) : unique(graph.name, taken_graphs_);
  }

  void name_params(const Graph& graph) {
    names_.clear();
    buffers_.clear();
    std::unordered_set<std::string> taken;
    for (size_t i = 0; i < graph.params.size(); ++i) {
      const bool plain = canonical_ || options_.generic;
      const std::string name =
          plain ? fmt::format("arg{}", i) : unique(graph.param_names[i], taken);
      names_[graph.params[i].node.get()] = name_text(name);
      if (graph.writable[i]) buffers_.insert(graph.params[i].node.get());
    }
  }

  void print_graph(const Graph& graph) {
    name_params(graph);
    options_.generic ? generic_header(graph) : readable_header(graph);
    int64_t next = 0;
    for (const NodePtr& node : graph.nodes()) {
      if (node->op == &kParameter) continue;
      names_[node.get()] = fmt::format("{}", next);
      options_.generic ? generic_node(*node) : readable_node(*node, next);
      next += options_.generic ? 1 : static_cast<int64_t>(node->types.size());
    }
    options_.generic ? generic_footer(graph) : readable_footer(graph);
  }

  std::string ref(const Value& value) const {
    const std::string& name = names_.at(value.node.get());
    if (value.node->types.size() == 1) return "%" + name;
    if (options_.generic) return fmt::format("%{}#{}", name, value.index);
    return fmt::format("%{}", std::stoll(name) + value.index);
  }

  template <class Range, class Text>
  static std::string join(const Range& range, Text text) {
    std::string out;
    for (const auto& item : range) {
      if (!out.empty()) out += ", ";
      out += text(item);
    }
    return out;
  }

  std::string refs(const std::vector<Value>& values) const {
    return join(values, [this](const Value& value) { return ref(value); });
  }

  std::string location(const LocationPtr& loc) const {
    if (!options_.locations || loc == nullptr) return "";
    std::string place;
    if (!loc->file.empty()) {
      place = fmt::format("{}:{}:{}", quoted(loc->file), loc->line, loc->column);
    }
    if (loc->layer.empty()) return place.empty() ? "" : fmt::format(" loc({})", place);
    if (place.empty()) return fmt::format(" loc({})", quoted(loc->layer));
    return fmt::format(" loc({}({}))", quoted(loc->layer), place);
  }

  // Names whose range says more than "any size".
  static std::map<std::string, DimRange> ranges(const Graph& graph) {
    std::map<std::string, DimRange> found;
    auto collect = [&found](const Shape& shape) {
      for (const Dim& dim : shape) {
        if (dim.is_static()) continue;
        for (const auto& [symbol, range] : dim.symbols()) {
          if (range != DimRange()) found.emplace(symbol, range);
        }
      }
    };
    for (const Value& param : graph.params) collect(param.shape());
    for (const NodePtr& node : graph.nodes()) {
      for (const TensorType& type : node->types) collect(type.shape);
    }
    return found;
  }

  static std::string range_text(const std::string& symbol, const DimRange& range) {
    std::string text = range.max == DimRange::kInf
                           ? fmt::format("{} in [{}, inf)", quoted(symbol), range.min)
                           : fmt::format("{} in [{}, {}]", quoted(symbol), range.min, range.max);
    if (range.divisor != 1) text += fmt::format(" step {}", range.divisor);
    return text;
  }

  // --- readable form ---

  void readable_header(const Graph& graph) {
    add("  tn.graph @{}", name_text(graph_names_.at(&graph)));
    const auto known = ranges(graph);
    if (!known.empty()) {
      add("<{}>",
          join(known, [](const auto& item) { return range_text(item.first, item.second); }));
    }
    out_ += '(';
    for (size_t i = 0; i < graph.params.size(); ++i) {
      if (i > 0) out_ += ", ";
      add("{}: {}{}", ref(graph.params[i]), boundary_type(graph.params[i]),
          location(graph.params[i].node->location));
    }
    out_ += ')';
    if (!graph.results.empty()) add(" -> {}", types_of(graph.results));
    out_ += " {\n";
  }

  std::string boundary_type(const Value& param) const {
    if (buffers_.count(param.node.get()) == 0) return str(param.type());
    return fmt::format("buffer<{}, {}>", tenon::str(param.shape()), tenon::name(param.dtype()));
  }

  static std::string str(const TensorType& type) { return ir::str(type); }

  static std::string types_of(const std::vector<Value>& values) {
    if (values.size() == 1) return str(values[0].type());
    return "(" + join(values, [](const Value& value) { return str(value.type()); }) + ")";
  }

  void readable_node(const Node& node, int64_t first) {
    out_ += "    ";
    for (size_t i = 0; i < node.types.size(); ++i) {
      add("{}%{}", i == 0 ? "" : ", ", first + static_cast<int64_t>(i));
    }
    add("{}tn.{}", node.types.empty() ? "" : " = ", node.op->name);
    if (node.op == &kConstant) {
      add(" {}", literal(node.attrs.get<Literal>("value")));
    } else if (node.op == &kConstantExternal) {
      add(" {}{} : {}", quoted(node.attrs.s("name")), node.attrs.b("relative") ? " relative" : "",
          str(node.types[0]));
    } else if (node.op == &kCall) {
      add(" @{}({})", name_text(graph_names_.at(node.attrs.get<GraphPtr>("callee").get())),
          refs(node.operands));
      const std::string& prefix = node.attrs.s("prefix");
      if (!prefix.empty()) add(" {{prefix = {}}}", quoted(prefix));
    } else {
      if (!node.operands.empty()) add(" {}", refs(node.operands));
      readable_attrs(node);
      readable_type(node);
    }
    out_ += location(node.location);
    out_ += '\n';
  }

  void readable_attrs(const Node& node) {
    std::string text;
    for (const AttrSpec& spec : node.op->attrs) {
      const Attr& value = *node.attrs.find(spec.name);
      if (!spec.required && equal(value, spec.default_value)) continue;
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", spec.name, readable_attr(value));
    }
    if (!text.empty()) add(" {{{}}}", text);
  }

  void readable_type(const Node& node) {
    if (node.types.empty()) return;
    if (node.types.size() == 1) {
      if (expected_type(node.operands) == node.types[0]) return;
      add(" : {}", str(node.types[0]));
      return;
    }
    add(" : ({})", join(node.types, [](const TensorType& type) { return str(type); }));
  }

  std::string literal(const Literal& value) const {
    return literal_text(value, canonical_                ? LiteralForm::kDigest
                               : options_.full_constants ? LiteralForm::kFull
                                                         : LiteralForm::kElide);
  }

  struct ReadableAttr {
    const Printer& printer;
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return float_text(value); }
    std::string operator()(const std::string& value) const { return quoted(value); }
    std::string operator()(DType value) const { return std::string(tenon::name(value)); }
    std::string operator()(const std::vector<int64_t>& values) const {
      return "[" + join(values, [](int64_t value) { return fmt::format("{}", value); }) + "]";
    }
    std::string operator()(const Shape& value) const { return tenon::str(value); }
    std::string operator()(const Literal& value) const { return printer.literal(value); }
    std::string operator()(const GraphPtr& value) const {
      return "@" + name_text(printer.graph_names_.at(value.get()));
    }
  };

  std::string readable_attr(const Attr& attr) const {
    return std::visit(ReadableAttr{*this}, attr);
  }

  void readable_footer(const Graph& graph) {
    for (const Update& update : graph.updates) {
      add("    tn.update {}, {}\n", ref(graph.params[update.param]), ref(update.value));
    }
    add("    tn.return{}{}", graph.results.empty() ? "" : " ", refs(graph.results));
    if (!canonical_ && !graph.result_names.empty())
      add(" {{names = [{}]}}", names_list(graph.result_names));
    out_ += "\n  }\n";
  }

  static std::string names_list(const std::vector<std::string>& names) {
    return join(names, [](const std::string& name) { return quoted(name); });
  }

  // --- generic form ---

  struct GenericAttr {
    const Printer& printer;
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{} : i64", value); }
    std::string operator()(double value) const {
      return fmt::format("0x{:016X} : f64", std::bit_cast<uint64_t>(value));
    }
    std::string operator()(const std::string& value) const { return quoted(value); }
    std::string operator()(DType value) const {
      return fmt::format("#tn.dtype<{}>", tenon::name(value));
    }
    std::string operator()(const std::vector<int64_t>& values) const {
      if (values.empty()) return "array<i64>";
      return "array<i64: " + join(values, [](int64_t v) { return fmt::format("{}", v); }) + ">";
    }
    std::string operator()(const Shape& value) const {
      return fmt::format("#tn.shape<{}>", tenon::str(value));
    }
    std::string operator()(const Literal& value) const {
      return fmt::format("#tn.literal<{}>", printer.literal(value));
    }
    std::string operator()(const GraphPtr& value) const {
      return "@" + name_text(printer.graph_names_.at(value.get()));
    }
  };

  std::string generic_type(const Value& value) const { return "!tn." + boundary_type(value); }

  std::string generic_types(const std::vector<Value>& values) const {
    return "(" + join(values, [this](const Value& value) { return generic_type(value); }) + ")";
  }

  void generic_header(const Graph& graph) {
    add("  \"tn.graph\"() <{{sym_name = {}, arg_names = [{}]", quoted(graph_names_.at(&graph)),
        names_list(graph.param_names));
    const auto known = ranges(graph);
    if (!known.empty()) {
      add(", ranges = [{}]", join(known, [](const auto& item) {
            const DimRange& range = item.second;
            return fmt::format("[{}, {}, {}, {}]", quoted(item.first), range.min,
                               range.max == DimRange::kInf ? -1 : range.max, range.divisor);
          }));
    }
    out_ += "}> ({\n";
    if (graph.params.empty()) return;
    add("  ^bb0({}):\n", join(graph.params, [this](const Value& param) {
          return fmt::format("{}: {}{}", ref(param), generic_type(param),
                             location(param.node->location));
        }));
  }

  void generic_node(const Node& node) {
    out_ += "    ";
    if (!node.types.empty()) add("%{}", names_.at(&node));
    if (node.types.size() > 1) add(":{}", node.types.size());
    add("{}\"tn.{}\"({})", node.types.empty() ? "" : " = ", node.op->name, refs(node.operands));
    if (!node.attrs.items().empty()) {
      add(" {{{}}}", join(node.attrs.items(), [this](const auto& item) {
            return item.first + " = " + std::visit(GenericAttr{*this}, item.second);
          }));
    }
    add(" : {} -> ", generic_types(node.operands));
    auto type = [](const TensorType& t) { return "!tn." + str(t); };
    if (node.types.size() == 1) {
      out_ += type(node.types[0]);
    } else {
      add("({})", join(node.types, type));
    }
    add("{}\n", location(node.location));
  }

  void generic_footer(const Graph& graph) {
    for (const Update& update : graph.updates) {
      const std::vector<Value> pair{graph.params[update.param], update.value};
      add("    \"tn.update\"({}) : {} -> ()\n", refs(pair), generic_types(pair));
    }
    add("    \"tn.return\"({})", refs(graph.results));
    if (!graph.result_names.empty()) add(" {{names = [{}]}}", names_list(graph.result_names));
    add(" : {} -> ()\n  }}) : () -> ()\n", generic_types(graph.results));
  }

  PrintOptions options_;
  bool canonical_;
  std::string out_;
  std::unordered_set<std::string> taken_graphs_;
  std::unordered_map<const Graph*, std::string> graph_names_;
  std::unordered_map<const Node*, std::string> names_;  // of the graph being printed
  std::unordered_set<const Node*> buffers_;
};

}  // namespace

std::string print(const GraphPtr& graph, const PrintOptions& options) {
  return Printer(options, false).module(graph);
}

std::string canonical(const GraphPtr& graph) { return Printer({}, true).module(graph); }

int64_t count(const GraphPtr& graph, std::string_view op_name) {
  int64_t n = 0;
  for (const GraphPtr& body : reachable_graphs(graph)) {
    for (const NodePtr& node : body->nodes()) n += node->op->name == op_name ? 1 : 0;
  }
  return n;
}

}  // namespace tenon::ir
