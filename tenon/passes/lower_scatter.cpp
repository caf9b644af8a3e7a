#include "tenon/passes/lower_scatter.h"

#include <numeric>

#include "tenon/ops/checks.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/position.h"
#include "tenon/ops/scatter.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Val;

constexpr int64_t kColumns = 16;    // a block of columns is a multiple of these
constexpr int64_t kLongRow = 1024;  // bytes of a row that is worth writing past the caches
constexpr int64_t kManyLines = 64;  // as many lines keep the threads busy without being cut

class Scatter {
 public:
  explicit Scatter(KernelFrame& frame)
      : frame_(frame),
        b_(frame.builder()),
        node_(*frame.body().anchor.node),
        indices_(node_.operands[1]),
        updates_(node_.operands[2]),
        dtype_(updates_.dtype()),
        mode_(ops::scatter_mode(node_)),
        along_(node_.op == &ops::op::put_along_axis) {
    const Shape& shape = node_.types[0].shape;
    const int64_t at = ops::normalize_axis(node_.op->name, node_.attrs.i("axis"), shape.size());
    axis_ = static_cast<size_t>(at);
    length_ = shape[axis_];
    outer_ = Shape(shape.begin(), shape.begin() + at);
    inner_ = Shape(shape.begin() + at + 1, shape.end());
    lines_ = product(outer_);
    width_ = product(inner_);
    count_ = along_ ? indices_.shape()[axis_] : product(indices_.shape());
    for (size_t i = axis_ + 1; along_ && i < shape.size(); ++i) {
      by_column_ = by_column_ || indices_.shape()[i] != Dim(1);
    }
  }

  void emit() {
    choose_blocks();
    frame_.grid_loop(lines_ * parts_, false, [&](Val g) {
      const Val line = b_.index_div(g, parts_);
      b_.set_bound(line, lines_);
      line_ = line;
      const Val block = b_.mul(b_.index_rem(g, parts_), b_.dim(block_));
      first_ = b_.binary(Op::kSMin, block, b_.dim(width_));
      end_ = b_.binary(Op::kSMin, b_.add(first_, b_.dim(block_)), b_.dim(width_));
      b_.loop(b_.i64(0), b_.dim(count_), {}, [&](Val k) { update_row(k); });
    });
  }

 private:
  void choose_blocks() {
    const int64_t row_bytes = width_.lower_bound() * static_cast<int64_t>(size_of(dtype_));
    streams_ = mode_ == ops::ScatterMode::kSet && frame_.streams(0) && row_bytes >= kLongRow;
    parts_ = 1;
    block_ = width_;
    if (lines_.lower_bound() < kManyLines && width_ != Dim(1)) {
      const Dim threads(kir::kDimThreads, {.min = 1});
      parts_ = dim_max(dim_min(threads, floor_div(width_, Dim(kColumns))), Dim(1));
      block_ = ceil_div(ceil_div(width_, parts_), Dim(kColumns)) * Dim(kColumns);
    }
    const int64_t touched = mode_ == ops::ScatterMode::kSet ? 2 : 3;
    kir::Kernel& kernel = b_.kernel();
    kernel.bytes_per_index = count_ * block_ * Dim(touched * static_cast<int64_t>(size_of(dtype_)));
    kernel.ops_per_index = count_ * block_;
  }

  void update_row(Val k) {
    if (!by_column_) {
      const ops::Position row = position(k, b_.i64(0));
      return b_.if_then(row.inside, [&] {
        each_column([&](Val column) { update(k, column, row.at, nullptr); });
      });
    }
    each_column([&](Val column) {
      const ops::Position own = position(k, column);
      update(k, column, own.at, own.inside);
    });
  }

  void each_column(const std::function<void(Val)>& body) {
    if (width_ == Dim(1)) return body(b_.i64(0));
    const int64_t multiple = std::gcd(std::max<int64_t>(width_.known_divisor(), 1),
                                      parts_ == Dim(1) ? int64_t{1} << 20 : kColumns);
    b_.loop(first_, end_, {.vector = true, .multiple = multiple}, [&](Val column) {
      b_.set_bound(column, width_);
      body(column);
    });
  }

  ops::Position position(Val k, Val column) {
    ops::Index at;
    if (along_) {
      at = ops::broadcast_index(b_, indices_.shape(), updates_.shape(), full_index({k}, column));
    } else {
      at = ops::unflatten_index(b_, indices_.shape(), k);
    }
    return ops::emit_position(b_, frame_.context().element(indices_, at), indices_.dtype(),
                              length_);
  }

  ops::Index full_index(const ops::Index& middle, Val column) {
    ops::Index index = ops::unflatten_index(b_, outer_, line_);
    index.insert(index.end(), middle.begin(), middle.end());
    const ops::Index inner = ops::unflatten_index(b_, inner_, column);
    index.insert(index.end(), inner.begin(), inner.end());
    return index;
  }

  Val flat(Val row_of_line, const Dim& rows, Val column) {
    const Val row = b_.add(b_.mul(line_, b_.dim(rows)), row_of_line);
    return b_.add(b_.mul(row, b_.dim(width_)), column);
  }

  Val fresh(Val k, Val column) {
    if (auto buffer = frame_.context().buffer_of(updates_)) {
      return b_.load(*buffer, flat(k, count_, column));
    }
    const ops::Index middle =
        along_ ? ops::Index{k} : ops::unflatten_index(b_, indices_.shape(), k);
    return frame_.context().element(updates_, full_index(middle, column));
  }

  // `inside` (null: it is known) guards memory where a position is outside.
  void update(Val k, Val column, Val position, Val inside) {
    const uint32_t root = frame_.root_buffer(0);
    const Val place = flat(position, length_, column);
    Val value = fresh(k, column);
    if (mode_ != ops::ScatterMode::kSet) {
      const Val old =
          inside == nullptr ? b_.load(root, place) : b_.load_if(root, place, inside, value);
      value = ops::emit_scattered(b_, mode_, dtype_, old, value);
    }
    if (inside == nullptr) {
      b_.store(root, place, value, streams_);
    } else {
      b_.store_if(root, place, value, inside);
    }
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const ir::Node& node_;
  const ir::Value& indices_;
  const ir::Value& updates_;
  DType dtype_;
  ops::ScatterMode mode_;
  bool along_;
  bool streams_ = false;
  bool by_column_ = false;  // columns of a row have positions of their own
  size_t axis_ = 0;
  Shape outer_;
  Shape inner_;
  Dim length_;  // of the axis
  Dim lines_;   // outer elements
  Dim width_;   // inner elements
  Dim count_;   // indices of a line
  Dim parts_;   // blocks of columns
  Dim block_;
  Val line_ = nullptr;
  Val first_ = nullptr;  // of the columns of this grid index
  Val end_ = nullptr;
};

}  // namespace

void lower_scatter(KernelFrame& frame) { Scatter(frame).emit(); }

}  // namespace tenon::passes
