#include "tenon/passes/lower_rows_in_turn.h"

#include <memory>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/passes/inner_loops.h"
#include "tenon/passes/kept_rows.h"

namespace tenon::passes {

using kir::Val;

std::optional<std::vector<ir::Value>> scalars_beside(const KernelFrame& frame,
                                                     const ir::Value& kept) {
  Shape one_each = frame.body().shape;
  one_each.back() = 1;
  std::vector<ir::Value> scalars;
  std::unordered_set<ir::Value, ir::ValueHash> seen;
  std::vector<ir::Value> stack = frame.body().roots;
  while (!stack.empty()) {
    const ir::Value value = stack.back();
    stack.pop_back();
    const ir::Node& node = *value.node;
    if (value == kept || frame.context().buffer_of(value) || !seen.insert(value).second) continue;
    if (node.op->is(ir::kLeaf)) continue;
    if (value.shape() == one_each) {
      scalars.push_back(value);
    } else if (node.op->is(ir::kElementwise)) {
      stack.insert(stack.end(), node.operands.begin(), node.operands.end());
    } else {
      return std::nullopt;
    }
  }
  return scalars;
}

void lower_rows_in_turn(KernelFrame& frame, const ir::Value& kept,
                        const std::vector<ir::Value>& scalars) {
  kir::Builder& b = frame.builder();
  const Shape& shape = frame.body().shape;
  const Shape outer(shape.begin(), shape.end() - 1);
  const Dim rows = product(outer);
  const auto finishing = std::make_shared<bool>(false);
  std::vector<uint32_t> cells;
  for (const ir::Value& scalar : scalars) {
    const uint32_t cell = b.add_scratch("cell", scalar.dtype(), Dim(1));
    cells.push_back(cell);
    frame.context().set_element(scalar, [&frame, scalar, cell, finishing](std::span<const Val> at) {
      const ir::Node& node = *scalar.node;
      return *finishing ? frame.builder().load(cell, frame.builder().i64(0))
                        : node.op->lower(frame.context(), node, scalar.index, at);
    });
  }
  const auto finish = [&](Val g, Val j) {
    ops::Index index = grid_index(b, outer, g);
    index.push_back(j);
    *finishing = true;
    frame.store_roots(index);
    *finishing = false;
  };
  frame.grid_loop(rows, false, [&](Val g) {
    const ops::Index index = grid_index(b, outer, g);
    Val before = b.sub(g, b.i64(1));
    b.set_bound(before, rows);
    Val has_before = b.cmp(kir::Pred::kSGt, g, b.begin());
    keep_row(frame, kept, index, [&](Val j) { b.if_then(has_before, [&] { finish(before, j); }); });
    for (size_t k = 0; k < scalars.size(); ++k) {
      ops::Index at = index;
      at.push_back(b.i64(0));
      b.store(cells[k], b.i64(0), frame.context().element(scalars[k], at));
    }
  });
  b.if_then(b.cmp(kir::Pred::kSLt, b.begin(), b.end()), [&] {
    Val last = b.sub(b.end(), b.i64(1));
    b.set_bound(last, rows);
    row_loop(frame, [&](Val j) { finish(last, j); });
  });
}

}  // namespace tenon::passes
