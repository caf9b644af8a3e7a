#include "tenon/passes/kept_rows.h"

#include <map>
#include <memory>
#include <utility>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kLongestKept = 65536;  // elements of a row that a thread keeps in scratch
constexpr int kWorthKeeping = 10;        // operations of an element that a row keeps

struct ByCreation {
  bool operator()(const ir::Value& a, const ir::Value& b) const {
    return std::pair(a.node->id, a.index) < std::pair(b.node->id, b.index);
  }
};

bool reduces_rows(const ir::Node& node, size_t rank) {
  return node.op->is(ir::kReduction) &&
         reduced_axes(node) == std::vector<int>{static_cast<int>(rank) - 1};
}

// A reduction along the rows of `value`.
ir::Value reduction_of(const GroupBody& body, const ir::Value& value) {
  for (const ir::NodePtr& node : nodes_of(body)) {
    if (reduces_rows(*node, body.shape.size()) && node->operands[0] == value) return {node, 0};
  }
  throw InternalError("internal: a row is kept that no reduction reads");
}

}  // namespace

std::vector<ir::Value> values_to_keep(const KernelFrame& frame) {
  const GroupBody& body = frame.body();
  const Shape& shape = body.shape;
  const bool over_rows = frame.group().rows && body.grid_dims + 1 == shape.size();
  if (!over_rows || frame.group().scalar) return {};
  if (shape.back().is_static() && shape.back().value() > kLongestKept) return {};
  // The only row has a constant index: its reductions stand before the row's loop begins.
  if (product(Shape(shape.begin(), shape.end() - 1)) == Dim(1)) return {};
  struct Readers {
    int reductions = 0;
    int others = 0;
  };
  std::map<ir::Value, Readers, ByCreation> readers;
  for (const ir::NodePtr& node : nodes_of(body)) {
    // Anything else might ask for an element of another row.
    const bool same_row = node->op->is(ir::kElementwise) || node->op->is(ir::kReduction) ||
                          node->op->is(ir::kLeaf) || node->op->name == "broadcast_to";
    if (!same_row) return {};
    const bool reduces = reduces_rows(*node, shape.size());
    for (const ir::Value& operand : node->operands) {
      const bool along = reduces && operand.shape() == shape;
      ++(along ? readers[operand].reductions : readers[operand].others);
    }
  }
  std::vector<ir::Value> kept;
  for (const auto& [value, count] : readers) {
    const bool costly = value.node->op->is(ir::kElementwise) && value.shape() == shape &&
                        element_cost(*value.node) >= kWorthKeeping;
    if (costly && count.reductions > 0 && count.reductions + count.others > 1) {
      kept.push_back(value);
    }
  }
  return kept;
}

void keep_row(KernelFrame& frame, const ir::Value& value, const ops::Index& index,
              const std::function<void(Val)>& before) {
  const uint32_t row = frame.builder().add_scratch("row", value.dtype(), frame.body().shape.back());
  const auto kept = std::make_shared<bool>(false);
  const auto loads = std::make_shared<bool>(false);
  frame.context().set_element(value,
                              [&frame, value, before, row, kept, loads](std::span<const Val> at) {
                                kir::Builder& b = frame.builder();
                                if (*kept || *loads) return b.load(row, at.back());
                                *loads = true;
                                before(at.back());
                                *loads = false;
                                Val computed = frame.context().computed(value, at);
                                b.store(row, at.back(), computed);
                                return computed;
                              });
  const ir::Value reduction = reduction_of(frame.body(), value);
  ops::Index at = index;
  if (reduction.shape().size() > index.size()) at.push_back(frame.builder().i64(0));
  frame.context().element(reduction, at);
  *kept = true;
}

}  // namespace tenon::passes
