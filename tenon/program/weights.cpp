#include "tenon/program/weights.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"

namespace tenon::program {
namespace {

[[noreturn]] void declared_twice(const std::string& where, const Weight& a, const Weight& b) {
  auto text = [](const Weight& w) { return std::string(name(w.dtype)) + str(w.shape); };
  throw ValueError(
      fmt::format("{}: \"{}\" is declared as {} and as {}", where, a.name, text(a), text(b)),
      {.label = "weight_twice"});
}

class Collector {
 public:
  void visit(const ir::GraphPtr& graph, const std::string& prefix) {
    if (!seen_.insert({graph.get(), prefix}).second) return;
    for (const ir::NodePtr& node : nodes_of(graph)) {
      if (node->op == &ir::kConstantExternal) {
        bool relative = node->attrs.b("relative");
        add({(relative ? prefix : "") + node->attrs.s("name"), node->types[0].dtype,
             node->types[0].shape});
      } else if (node->op == &ir::kCall) {
        visit(node->attrs.get<ir::GraphPtr>("callee"), prefix + node->attrs.s("prefix"));
      }
    }
  }

  std::vector<Weight> weights;

 private:
  const std::vector<ir::NodePtr>& nodes_of(const ir::GraphPtr& graph) {
    auto [it, added] = nodes_.try_emplace(graph.get());
    if (added) it->second = graph->nodes();
    return it->second;
  }

  void add(Weight weight) {
    auto [it, added] = index_.try_emplace(weight.name, weights.size());
    if (added) {
      weights.push_back(std::move(weight));
      return;
    }
    const Weight& first = weights[it->second];
    if (first.dtype == weight.dtype && first.shape == weight.shape) return;
    declared_twice("constant_external", first, weight);
  }

  std::set<std::pair<const ir::Graph*, std::string>> seen_;
  std::map<const ir::Graph*, std::vector<ir::NodePtr>> nodes_;
  std::map<std::string, size_t> index_;
};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t change = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({change, corner + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string nearest(const std::string& name, const std::vector<Weight>& weights) {
  size_t best = name.size() / 2 + 1;
  std::string hint;
  for (const Weight& weight : weights) {
    size_t distance = edit_distance(name, weight.name);
    if (distance >= best) continue;
    best = distance;
    hint = fmt::format("did you mean {}?", weight.name);
  }
  return hint;
}

bool fits(const Weight& weight, const runtime::Array& array) {
  if (!array.valid() || array.dtype() != weight.dtype || array.rank() != weight.shape.size()) {
    return false;
  }
  for (size_t i = 0; i < weight.shape.size(); ++i) {
    if (weight.shape[i].is_static() && weight.shape[i].value() != array.dims()[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<Weight> externals_of(const ir::GraphPtr& graph) {
  Collector collector;
  collector.visit(graph, "");
  return std::move(collector.weights);
}

void check_weight(const std::string& function, const Weight& weight, const runtime::Array& array) {
  if (fits(weight, array)) return;
  throw ValueError(
      fmt::format("{}: weight {}: expected {}{}, got {}", function, weight.name, name(weight.dtype),
                  tenon::str(weight.shape), array.valid() ? array.describe() : "nothing"),
      {.label = "weight_type"});
}

void check_weights(const std::string& function, const std::vector<Weight>& weights,
                   const ExternalArrays& given) {
  std::string missing;
  for (const Weight& weight : weights) {
    if (given.count(weight.name) == 0) missing += (missing.empty() ? "" : ", ") + weight.name;
  }
  if (!missing.empty()) {
    throw KeyError(fmt::format("{}: missing weights: {}", function, missing),
                   {.label = "weight_missing"});
  }
  for (const Weight& weight : weights) check_weight(function, weight, given.at(weight.name));
  for (const auto& [name, array] : given) {
    auto same = [&n = name](const Weight& weight) { return weight.name == n; };
    if (std::any_of(weights.begin(), weights.end(), same)) continue;
    throw KeyError(fmt::format("{}: nothing reads the weight {}", function, name),
                   {.label = "weight_unused", .hint = nearest(name, weights)});
  }
}

NamedSource by_name(const std::string& function, const std::vector<Weight>& weights,
                    const WeightSource& source) {
  std::map<std::string_view, const Weight*> named;
  for (const Weight& weight : weights) named[weight.name] = &weight;
  return [function, named = std::move(named), &source](const std::string& name) {
    const auto it = named.find(name);
    if (it == named.end()) {
      throw FormatError(
          fmt::format("{}: the plan reads {}, which is no weight (file damaged)", function, name));
    }
    runtime::Array array = source(*it->second);
    check_weight(function, *it->second, array);
    return array;
  };
}

void SharedWeights::add(const std::string& function, const std::vector<Weight>& read) {
  functions += (functions.empty() ? "" : ", ") + function;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < weights.size(); ++i) known[weights[i].name] = i;
  for (const Weight& weight : read) {
    const auto [it, added] = known.try_emplace(weight.name, weights.size());
    if (added) {
      weights.push_back(weight);
      continue;
    }
    const Weight& first = weights[it->second];
    if (first.dtype != weight.dtype || first.shape != weight.shape) {
      declared_twice(functions, first, weight);
    }
  }
}

}  // namespace tenon::program
