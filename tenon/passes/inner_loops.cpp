#include "tenon/passes/inner_loops.h"

#include <algorithm>

namespace tenon::passes {

using kir::Val;

ops::Index grid_index(kir::Builder& builder, const Shape& outer, Val g) {
  return outer.size() == 1 ? ops::Index{g} : ops::unflatten_index(builder, outer, g);
}

void row_loop(KernelFrame& frame, const std::function<void(Val)>& body) {
  kir::Builder& b = frame.builder();
  const Dim& length = frame.body().shape.back();
  kir::LoopSpec spec;
  spec.vector = true;
  spec.multiple = std::max<int64_t>(1, length.known_divisor());
  b.loop(b.i64(0), b.dim(length), spec, body);
}

void inner_loops(KernelFrame& frame, ops::Index& index) {
  kir::Builder& b = frame.builder();
  const Shape& shape = frame.body().shape;
  const size_t at = index.size();
  if (at == shape.size()) return frame.store_roots(index);
  const auto inside = [&](Val i) {
    index.push_back(i);
    inner_loops(frame, index);
    index.pop_back();
  };
  if (shape[at] == Dim(1)) return inside(b.i64(0));
  if (at + 1 == shape.size() && !frame.group().scalar) return row_loop(frame, inside);
  b.loop(b.i64(0), b.dim(shape[at]), {}, inside);
}

}  // namespace tenon::passes
