#include "tenon/frontend/staging.h"

#include <algorithm>
#include <ostream>
#include <set>

#include "tenon/frontend/layer.h"
#include "tenon/ir/verify.h"

namespace tenon {
namespace {

// "0" and "1.w" are no names of parameters: "arg0", "arg1.w".
std::string parameter_name(const std::string& route) {
  const bool digit = !route.empty() && route[0] >= '0' && route[0] <= '9';
  return digit ? "arg" + route : route;
}

void check_distinct(const std::string& function, const std::vector<std::string>& routes) {
  std::set<std::string> seen;
  for (const std::string& route : routes) {
    if (seen.insert(route).second) continue;
    throw ValueError(fmt::format("{}: two arguments are both called {}", function, route),
                     {.label = "argument_route", .hint = "rename a key that holds a dot"});
  }
}

[[noreturn]] void refuse_value(const std::string& function, const std::string& route) {
  throw TypeError(fmt::format("{}: argument {} is a value, expected a layout", function, route),
                  {.label = "spec_c1", .hint = "pass its .layout()"});
}

[[noreturn]] void refuse_declaration(const std::string& function, const std::string& route,
                                     const TensorLayout& layout) {
  throw TypeError(
      fmt::format("{}: argument {}: expected a tensor, got {}", function, route, layout.str()),
      {.label = "argument_type", .hint = "compile from declarations by compile(fn).with(specs…)"});
}

}  // namespace

std::vector<std::string> TensorTree::routes(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  const std::vector<std::string> all = program::routes(tokens, names);
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_tensor[i]) out.push_back(all[i]);
  }
  return out;
}

Staging::Staging(const std::string& name, const StageOptions& options, TensorTree& arguments,
                 SpecMode mode)
    : options_(options), scope_(name, Trace::Kind::kProgram) {
  Trace& trace = *scope_.trace();
  trace.allow_subgraphs = options.allow_subgraphs;
  signature_.function = name;
  signature_.names = options.argument_names;
  signature_.arguments = program::Structure(arguments.tokens);
  signature_.statics = arguments.statics;
  const std::vector<std::string> routes = arguments.routes(options.argument_names);
  check_distinct(name, routes);
  for (size_t i = 0; i < routes.size(); ++i) {
    Tensor& leaf = *arguments.tensors[i];
    if (!leaf.defined()) {
      throw TypeError(fmt::format("{}: argument {}: the tensor has no value", name, routes[i]),
                      {.label = "operand_c1"});
    }
    if (mode == SpecMode::kLayouts && !leaf.is_layout()) refuse_value(name, routes[i]);
    if (mode == SpecMode::kValues && leaf.is_layout()) {
      refuse_declaration(name, routes[i], leaf.layout());
    }
    const bool declared = leaf.is_layout();
    const TensorLayout layout = leaf.layout();
    signature_.tensors.push_back(
        {layout.dtype(), layout.shape(), layout.writable(), declared ? layout.place() : ""});
    leaf = trace.parameter({layout.dtype(), layout.shape()}, parameter_name(routes[i]),
                           layout.writable());
    leaf.state()->argument = routes[i];
  }
}

Staged Staging::finish(TensorTree& result) {
  Trace& trace = *scope_.trace();
  std::vector<ir::Value> values;
  for (Tensor* tensor : result.tensors) {
    values.push_back(resolve(*tensor, signature_.function + ": result", Here::current()));
    const ir::TensorType& type = values.back().type();
    signature_.result_tensors.push_back({type.dtype, type.shape, false, ""});
  }
  signature_.results = program::Structure(result.tokens);
  signature_.result_statics = result.statics;
  ir::GraphPtr graph = trace.finish(values);
  if (values.empty() && graph->updates.empty()) {
    const std::string what = result.statics.empty() ? "nothing" : result.statics[0].view().str();
    throw TypeError(fmt::format("{}: returns no tensor and writes no buffer: it returned {}",
                                signature_.function, what),
                    {.label = "result_c1"});
  }
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin_;
  return {std::move(graph), std::move(signature_), ms.count()};
}

std::string StagedProgram::str(const ir::PrintOptions& options) const {
  return ir::print(staged_.graph, options);
}

void StagedProgram::verify() const { ir::verify(staged_.graph, ir::Stage::kTraced); }

std::ostream& operator<<(std::ostream& out, const StagedProgram& staged) {
  return out << staged.str();
}

}  // namespace tenon
