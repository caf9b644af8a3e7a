#include "tenon/passes/lower_take_rows.h"

#include "tenon/ir/op_def.h"
#include "tenon/ops/position.h"
#include "tenon/passes/inner_loops.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kWorthCalling = 64;  // elements of a row that is called before it is taken
constexpr int64_t kRowsAhead = 4;      // how many rows before

}  // namespace

bool takes_rows(const KernelFrame& frame) {
  const GroupBody& body = frame.body();
  const ir::Node& node = *body.roots[0].node;
  if (body.roots.size() != 1 || node.op->name != "take" || frame.group().scalar) return false;
  const ir::Value& from = node.operands[0];
  const Dim& length = body.shape.back();
  return frame.context().buffer_of(from) && from.shape().size() == 2 && node.attrs.i("axis") == 0 &&
         frame.streams(0) && !(length.is_static() && length.value() < kWorthCalling);
}

void lower_take_rows(KernelFrame& frame) {
  kir::Builder& b = frame.builder();
  const ir::Node& node = *frame.body().roots[0].node;
  const ir::Value& from = node.operands[0];
  const ir::Value& positions = node.operands[1];
  const Shape& shape = frame.body().shape;
  const Shape outer(shape.begin(), shape.end() - 1);
  const Dim rows = product(outer);
  frame.grid_loop(rows, false, [&](Val g) {
    ops::Index index = grid_index(b, outer, g);
    Val later = b.binary(kir::Op::kSMin, b.add(g, b.i64(kRowsAhead)), b.sub(b.dim(rows), b.i64(1)));
    b.set_bound(later, rows);
    Val position = frame.context().element(positions, grid_index(b, outer, later));
    position = ops::emit_from_front(b, position, positions.dtype(), from.shape()[0]);
    Val first = b.mul(position, b.dim(from.shape()[1]));
    row_loop(frame, [&](Val j) {
      b.prefetch(*frame.context().buffer_of(from), b.add(first, j), true);
      index.push_back(j);
      frame.store_roots(index);
      index.pop_back();
    });
  });
}

}  // namespace tenon::passes
