#include "tenon/passes/lower_slice_update.h"

#include <algorithm>

#include "tenon/ops/lower.h"

namespace tenon::passes {
namespace {

using kir::Val;

// First element of the region on each axis: the static start, or the operand clamped so that the
// region is whole.
ops::Index region_start(KernelFrame& frame, const ir::Node& node) {
  kir::Builder& b = frame.builder();
  const Shape& whole = node.operands[0].shape();
  const Shape& region = node.operands[1].shape();
  const std::vector<int64_t>& step = node.attrs.ints("step");
  ops::Index start;
  for (const Dim& dim : node.attrs.shape("start")) start.push_back(b.dim(dim));
  const std::vector<int64_t>& axes = node.attrs.ints("axes");
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = static_cast<size_t>(axes[k]);
    const Dim room = whole[axis] - ((region[axis] - Dim(1)) * Dim(step[axis]) + Dim(1));
    Val wanted = frame.context().element(node.operands[2 + k], {});
    Val capped = b.binary(kir::Op::kSMin, wanted, b.dim(room));
    start[axis] = b.binary(kir::Op::kSMax, capped, b.i64(0));
  }
  return start;
}

}  // namespace

void lower_slice_update(KernelFrame& frame) {
  kir::Builder& b = frame.builder();
  const ir::Node& node = *frame.body().anchor.node;
  const ir::Value& update = node.operands[1];
  const Shape& whole = node.operands[0].shape();
  const Shape& region = update.shape();
  const std::vector<int64_t>& step = node.attrs.ints("step");
  auto store = [&](std::span<const Val> index) {
    const ops::Index start = region_start(frame, node);
    ops::Index at;
    for (size_t i = 0; i < index.size(); ++i) {
      at.push_back(b.add(start[i], b.mul(index[i], b.i64(step[i]))));
    }
    Val value = frame.context().element(update, index);
    b.store(frame.root_buffer(0), ops::flatten_index(b, whole, at), value);
  };
  if (region.empty()) {
    frame.grid_loop(1, false, [&](Val) { store({}); });
    return;
  }
  // The region is moved, not the whole that it stands in.
  kir::Kernel& kernel = b.kernel();
  kernel.bytes_per_index = region.back() * Dim(2 * static_cast<int64_t>(size_of(update.dtype())));
  kernel.ops_per_index = region.back();
  const Shape outer(region.begin(), region.end() - 1);
  frame.grid_loop(product(outer), false, [&](Val g) {
    ops::Index index = ops::unflatten_index(b, outer, g);
    kir::LoopSpec spec;
    spec.vector = true;
    spec.multiple = std::max<int64_t>(1, region.back().known_divisor());
    b.loop(b.i64(0), b.dim(region.back()), spec, [&](Val i) {
      index.push_back(i);
      store(index);
      index.pop_back();
    });
  });
}

}  // namespace tenon::passes
