#include <map>
#include <set>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/program/artifact.h"

namespace tenon::program {
namespace {

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
    auto text = [](const Weight& w) { return std::string(name(w.dtype)) + str(w.shape); };
    throw ValueError(fmt::format("external {}: declared as {} and as {}", weight.name, text(first),
                                 text(weight)),
                     {.label = "external_type"});
  }

  std::set<std::pair<const ir::Graph*, std::string>> seen_;
  std::map<const ir::Graph*, std::vector<ir::NodePtr>> nodes_;
  std::map<std::string, size_t> index_;
};

}  // namespace

std::vector<Weight> externals_of(const ir::GraphPtr& graph) {
  Collector collector;
  collector.visit(graph, "");
  return std::move(collector.weights);
}

}  // namespace tenon::program
