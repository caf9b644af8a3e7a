#include "tenon/passes/lower_loops.h"

#include <optional>

#include "tenon/passes/blocking.h"
#include "tenon/passes/call_next_row.h"
#include "tenon/passes/inner_loops.h"
#include "tenon/passes/kept_rows.h"
#include "tenon/passes/lower_columns.h"
#include "tenon/passes/lower_rows_in_turn.h"
#include "tenon/passes/lower_take_rows.h"
#include "tenon/passes/lower_transpose.h"
#include "tenon/passes/lower_transposed_reads.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kSmallLast = 8;   // a last dimension below this does not fill vectors
constexpr int64_t kBlock = 4096;    // elements of a block of a long row
constexpr int64_t kFewRows = 64;    // fewer rows than this are cut into blocks
constexpr int64_t kShortRow = 256;  // shorter rows than this share a grid index
constexpr int64_t kManyGroups = 16;
constexpr int64_t kLongestAhead = 16384;  // elements of a row that the second cache holds twice

bool static_below(const Dim& dim, int64_t bound) { return dim.is_static() && dim.value() < bound; }

class Nest {
 public:
  explicit Nest(KernelFrame& frame)
      : frame_(frame), b_(frame.builder()), shape_(frame.body().shape) {}

  void emit() {
    const Dim count = product(shape_);
    if (count == Dim(1)) return one_element();
    if (shape_.size() == 1 && !frame_.group().scalar) return flat(count);
    if (!frame_.body().walked.empty()) return lower_columns(frame_);
    if (frame_.group().rows) return rows();
    if (static_below(shape_.back(), kSmallLast)) return flat(count);
    if (const std::optional<size_t> across = transposed_dim(frame_)) {
      return is_transpose(frame_) ? lower_transpose(frame_, *across)
                                  : lower_transposed_reads(frame_, *across);
    }
    const Dim outer = product(Shape(shape_.begin(), shape_.end() - 1));
    if (outer == Dim(1)) return flat(count);
    if (static_below(outer, kFewRows) && !static_below(shape_.back(), 2 * kBlock)) {
      return blocks(outer);
    }
    if (takes_rows(frame_)) return lower_take_rows(frame_);
    nest(default_grid_dims(), {});
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

  void rows() {
    const size_t grid_dims = frame_.body().grid_dims;
    const std::vector<ir::Value> kept = values_to_keep(frame_);
    std::optional<std::vector<ir::Value>> scalars;
    if (kept.size() == 1 && frame_.streams(0)) scalars = scalars_beside(frame_, kept[0]);
    if (scalars) {
      lower_rows_in_turn(frame_, kept[0], *scalars);
    } else {
      nest(grid_dims, kept);
    }
    const Dim& row = shape_.back();
    const bool fits = row.is_static() && row.value() >= kShortRow && row.value() <= kLongestAhead;
    if (fits && grid_dims + 1 == shape_.size()) call_next_row(b_.kernel(), row.value());
  }

  void nest(size_t grid_dims, const std::vector<ir::Value>& kept) {
    const Shape outer(shape_.begin(), shape_.begin() + static_cast<ptrdiff_t>(grid_dims));
    frame_.grid_loop(product(outer), false, [&](Val g) {
      ops::Index index = grid_index(b_, outer, g);
      for (const ir::Value& value : kept) keep_row(frame_, value, index, [](Val) {});
      inner_loops(frame_, index);
    });
  }

  void blocks(const Dim& outer) {
    const Shape outer_shape(shape_.begin(), shape_.end() - 1);
    const Dim& length = shape_.back();
    const Dim count = ceil_div(length, Dim(kBlock));
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
};

}  // namespace

void lower_loops(KernelFrame& frame) { Nest(frame).emit(); }

}  // namespace tenon::passes
