#include <bit>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/ir/verify.h"
#include "tenon/program/decode.h"

namespace tenon::program {
namespace {

class GraphDecoder {
 public:
  GraphDecoder(const fb::GraphModule& module, const OpenSection& open)
      : module_(module), open_(open), ranges_(decode_ranges(module.ranges())) {}

  std::vector<ir::GraphPtr> run() {
    for (const std::string& name : decode(module_.ops())) {
      const ir::OpDef* op = ir::find_op(name);
      expect(op != nullptr, "this run-time has no operation " + name);
      ops_.push_back(op);
    }
    if (module_.locations() != nullptr) {
      for (const fb::Location* l : *module_.locations()) {
        locations_.push_back(std::make_shared<const ir::Location>(
            ir::Location{decode(l->file()), l->line(), l->column(), decode(l->layer())}));
      }
    }
    expect(module_.graphs() != nullptr && module_.graphs()->size() > 0, "no graph");
    for (const fb::Graph* graph : *module_.graphs()) graphs_.push_back(decode_graph(*graph));
    for (const ir::GraphPtr& graph : graphs_) ir::verify(graph, ir::Stage::kTraced);
    return std::move(graphs_);
  }

 private:
  ir::GraphPtr decode_graph(const fb::Graph& g) {
    nodes_.clear();
    if (g.nodes() != nullptr) {
      for (const fb::Node* node : *g.nodes()) nodes_.push_back(decode_node(*node));
    }
    auto out = std::make_shared<ir::Graph>();
    out->name = decode(g.name());
    for (uint32_t param : decode(g.params())) {
      expect(param < nodes_.size() && nodes_[param]->op == &ir::kParameter, "no such parameter");
      out->params.push_back({nodes_[param], 0});
    }
    out->param_names = decode(g.param_names());
    if (g.writable() != nullptr) {
      for (uint8_t w : *g.writable()) out->writable.push_back(w != 0);
    }
    expect(
        out->param_names.size() == out->params.size() && out->writable.size() == out->params.size(),
        "a graph's parameters lack names");
    if (g.results() != nullptr) {
      for (const fb::Ref* ref : *g.results()) out->results.push_back(value(*ref));
    }
    if (g.updates() != nullptr) {
      for (const fb::Update* update : *g.updates()) {
        expect(update->param() < out->params.size() && out->writable[update->param()] &&
                   update->value() != nullptr,
               "an update of no writable parameter");
        out->updates.push_back({update->param(), value(*update->value())});
      }
    }
    out->result_names = decode(g.result_names());
    expect(out->result_names.empty() || out->result_names.size() == out->results.size(),
           "a graph's results lack names");
    return out;
  }

  ir::Value value(const fb::Ref& ref) const {
    expect(ref.node() < nodes_.size() && ref.result() < nodes_[ref.node()]->types.size(),
           "no such value");
    return {nodes_[ref.node()], ref.result()};
  }

  ir::NodePtr decode_node(const fb::Node& n) {
    expect(n.op() < ops_.size(), "no such operation");
    const ir::OpDef& op = *ops_[n.op()];
    std::vector<ir::Value> operands;
    if (n.operands() != nullptr) {
      for (const fb::Ref* ref : *n.operands()) operands.push_back(value(*ref));
    }
    ir::Attrs attrs;
    if (n.attrs() != nullptr) {
      for (const fb::Attr* attr : *n.attrs()) {
        std::string name = decode(attr->name());
        expect(!attrs.has(name), "an attribute stands twice");
        attrs.set(std::move(name), decode_attr(*attr));
      }
    }
    expect(n.location() <= locations_.size(), "no such location");
    ir::LocationPtr location = n.location() == 0 ? nullptr : locations_[n.location() - 1];
    ir::NodePtr node = ir::make_node(op, std::move(operands), std::move(attrs), location);
    size_t types = n.types() == nullptr ? 0 : n.types()->size();
    expect(types == node->types.size(), "an operation has another number of results");
    for (uint32_t i = 0; i < types; ++i) {
      const fb::Type* type = n.types()->Get(i);
      expect(decode_dtype(type->dtype()) == node->types[i].dtype &&
                 decode_shape(type->shape(), ranges_) == node->types[i].shape,
             fmt::format("{} has another result type than it says", op.name));
    }
    return node;
  }

  ir::Attr decode_attr(const fb::Attr& a) const {
    switch (a.kind()) {
      case fb::AttrKind::Bool: return a.number() != 0;
      case fb::AttrKind::Int: return a.number();
      case fb::AttrKind::Float: return std::bit_cast<double>(a.number());
      case fb::AttrKind::String: return decode(a.text());
      case fb::AttrKind::Dtype:
        expect(a.number() >= 0 && a.number() < kDTypeCount, "no such dtype");
        return static_cast<DType>(a.number());
      case fb::AttrKind::Ints: return decode(a.ints());
      case fb::AttrKind::Shape: return decode_shape(a.shape(), ranges_);
      case fb::AttrKind::Literal: return decode_constant(a.literal(), open_);
      case fb::AttrKind::Graph:
        expect(a.number() >= 0 && static_cast<size_t>(a.number()) < graphs_.size(),
               "a call of a graph that does not stand before");
        return graphs_[static_cast<size_t>(a.number())];
    }
    throw ValueError("no such kind of attribute");
  }

  const fb::GraphModule& module_;
  const OpenSection& open_;
  Dim::Ranges ranges_;
  std::vector<const ir::OpDef*> ops_;
  std::vector<ir::LocationPtr> locations_;
  std::vector<ir::GraphPtr> graphs_;
  std::vector<ir::NodePtr> nodes_;  // of the graph being read
};

}  // namespace

std::vector<ir::GraphPtr> decode_graphs(const fb::GraphModule& module, const OpenSection& open) {
  return GraphDecoder(module, open).run();
}

}  // namespace tenon::program
