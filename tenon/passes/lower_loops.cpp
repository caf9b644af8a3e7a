#include "tenon/passes/lower_loops.h"

#include <algorithm>

#include "tenon/ops/lower.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kSmallLast = 8;   // a last dimension below this does not fill vectors
constexpr int64_t kBlock = 4096;    // elements of a block of a long row
constexpr int64_t kFewRows = 64;    // fewer rows than this are cut into blocks
constexpr int64_t kShortRow = 256;  // shorter rows than this share a grid index
constexpr int64_t kManyGroups = 16;

bool static_below(const Dim& dim, int64_t bound) { return dim.is_static() && dim.value() < bound; }

class Nest {
 public:
  explicit Nest(KernelFrame& frame)
      : frame_(frame), b_(frame.builder()), shape_(frame.body().shape) {}

  void emit() {
    const size_t rank = shape_.size();
    const Dim count = product(shape_);
    if (count == Dim(1)) return one_element();
    const bool rows = frame_.group().rows;
    vector_ = !frame_.group().scalar;
    if (rank == 1 && vector_) return flat(count);
    if (rows) return nest(frame_.body().grid_dims);
    if (static_below(shape_.back(), kSmallLast)) return flat(count);
    const Dim outer = product(Shape(shape_.begin(), shape_.end() - 1));
    if (static_below(outer, kFewRows) && !static_below(shape_.back(), 2 * kBlock)) {
      return blocks(outer);
    }
    nest(default_grid_dims());
  }

 private:
  size_t default_grid_dims() const {
    const size_t rank = shape_.size();
    if (rank < 3 || !static_below(shape_.back(), kShortRow)) return rank - 1;
    const Dim before = product(Shape(shape_.begin(), shape_.end() - 2));
    return static_below(before, kManyGroups) ? rank - 1 : rank - 2;
  }

  void one_element() {
    frame_.grid_loop(1, false, [&](Val) {
      const ops::Index index(shape_.size(), b_.i64(0));
      frame_.store_roots(index);
    });
  }

  void flat(const Dim& count) {
    frame_.grid_loop(count, true, [&](Val g) {
      if (shape_.size() == 1) return frame_.store_roots(std::vector<Val>{g});
      frame_.store_roots(ops::unflatten_index(b_, shape_, g));
    });
  }

  void nest(size_t grid_dims) {
    const Shape outer(shape_.begin(), shape_.begin() + static_cast<ptrdiff_t>(grid_dims));
    frame_.grid_loop(product(outer), false, [&](Val g) {
      ops::Index index = outer.size() == 1 ? ops::Index{g} : ops::unflatten_index(b_, outer, g);
      inner_loops(index);
    });
  }

  void inner_loops(ops::Index& index) {
    const size_t at = index.size();
    if (at == shape_.size()) return frame_.store_roots(index);
    if (shape_[at] == Dim(1)) {
      index.push_back(b_.i64(0));
      inner_loops(index);
      index.pop_back();
      return;
    }
    kir::LoopSpec spec;
    spec.vector = vector_ && at + 1 == shape_.size();
    if (spec.vector) spec.multiple = std::max<int64_t>(1, shape_[at].known_divisor());
    b_.loop(b_.i64(0), b_.dim(shape_[at]), spec, [&](Val i) {
      index.push_back(i);
      inner_loops(index);
      index.pop_back();
    });
  }

  void blocks(const Dim& outer) {
    const Shape outer_shape(shape_.begin(), shape_.end() - 1);
    const Dim& length = shape_.back();
    const Dim count = floor_div(length + Dim(kBlock - 1), Dim(kBlock));
    frame_.grid_loop(outer * count, false, [&](Val g) {
      ops::Index index = ops::unflatten_index(b_, outer_shape, b_.index_div(g, count));
      Val first = b_.mul(b_.index_rem(g, count), b_.i64(kBlock));
      Val last = b_.binary(kir::Op::kSMin, b_.add(first, b_.i64(kBlock)), b_.dim(length));
      kir::LoopSpec spec;
      spec.vector = true;
      b_.loop(first, last, spec, [&](Val i) {
        b_.set_bound(i, length);
        index.push_back(i);
        frame_.store_roots(index);
        index.pop_back();
      });
    });
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const Shape& shape_;
  bool vector_ = true;
};

}  // namespace

void lower_loops(KernelFrame& frame) { Nest(frame).emit(); }

}  // namespace tenon::passes
