#include "tenon/passes/lower_columns.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "tenon/passes/blocking.h"
#include "tenon/passes/columns.h"
#include "tenon/passes/inner_loops.h"
#include "tenon/passes/kept_columns.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kVector = 16;           // the narrowest strip: a line of f32
constexpr int64_t kStrip = 64;            // four vectors: whole lines of results, one after another
constexpr int64_t kWidest = 1024;         // columns of a grid index
constexpr int64_t kStripBytes = 1 << 20;  // of a strip in scratch, in the second cache
constexpr int64_t kLittle = 8192;         // elements of a grid index
constexpr int64_t kFewStrips = 4;

class Columns {
 public:
  explicit Columns(KernelFrame& frame)
      : frame_(frame),
        b_(frame.builder()),
        shape_(frame.body().shape),
        walked_(frame.body().walked),
        height_(column_height(shape_, walked_)),
        reductions_(column_reductions(frame.body())),
        kept_(columns_to_keep(frame.body(), reductions_)) {
    lane_ = shape_.size() - 1;
    while (shape_[lane_] == Dim(1)) --lane_;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (axis != lane_ && !walks(axis)) outer_.push_back(shape_[axis]);
    }
  }

  void emit() {
    const Dim& lanes = shape_[lane_];
    width_ = choose_width();
    const Dim strips = ceil_div(lanes, Dim(width_));
    keep();
    frame_.grid_loop(product(outer_) * strips, false, [&](Val g) {
      const ops::Index outer = ops::unflatten_index(b_, outer_, b_.index_div(g, strips));
      first_ = b_.mul(b_.index_rem(g, strips), b_.i64(width_));
      Val last = b_.add(first_, b_.i64(width_));
      const bool even = lanes.known_divisor() % width_ == 0;
      if (!even) last = b_.binary(kir::Op::kSMin, last, b_.dim(lanes));
      kir::LoopSpec spec;
      spec.vector = true;
      spec.interleave = static_cast<int>(std::min(width_, kStrip) / kVector);
      // Nothing is called: what stands beside a strip is another one's.
      spec.ahead = width_;
      spec.quarters = 0;
      spec.multiple = std::gcd(std::max<int64_t>(lanes.known_divisor(), 1), width_);
      b_.loop(first_, last, spec, [&](Val j) {
        b_.set_bound(j, lanes);
        strip(outer, j);
      });
    });
  }

 private:
  bool walks(size_t axis) const {
    return std::binary_search(walked_.begin(), walked_.end(), static_cast<int>(axis));
  }

  int64_t choose_width() const {
    const int64_t height = std::max<int64_t>(height_.is_static() ? height_.value() : kStrip, 1);
    int64_t width = kStrip;
    while (width > kVector && width * height * kept_.element_bytes() > kStripBytes) width /= 2;
    while (width >= kStrip && width < kWidest && 2 * width * height <= kLittle) width *= 2;
    const Dim columns = product(outer_) * shape_[lane_];
    while (width > kVector && columns.upper_bound() < kFewStrips * width) width /= 2;
    return width;
  }

  // Each value is stored where the first walk that needs it computes it, and loaded from then on.
  void keep() {
    const int64_t line_bytes = std::max<int64_t>(kVector * kept_.element_bytes(), 1);
    if (height_.upper_bound() > kStripBytes / line_bytes) return;
    std::vector<uint32_t> slots;
    for (const DType dtype : kept_.slots) {
      slots.push_back(b_.add_scratch("columns", dtype, height_ * Dim(width_)));
    }
    for (const KeptColumns::Kept& kept : kept_.values) {
      const auto state = std::make_shared<State>();
      states_.push_back(state);
      const ir::Value value = kept.value;
      const uint32_t slot = slots[kept.slot];
      frame_.context().set_element(value, [this, value, slot, state](std::span<const Val> at) {
        Val place = place_of(at);
        if (state->kept) return b_.load(slot, place);
        state->touched = true;
        Val computed = frame_.context().computed(value, at);
        b_.store(slot, place, computed);
        return computed;
      });
    }
  }

  struct State {
    bool touched = false;  // a walk computes it
    bool kept = false;     // it did
  };

  Val place_of(std::span<const Val> at) {
    Val row = b_.i64(0);
    for (int axis : walked_) {
      const auto i = static_cast<size_t>(axis);
      row = b_.add(b_.mul(row, b_.dim(shape_[i])), at[i]);
    }
    return b_.add(b_.mul(row, b_.i64(width_)), b_.sub(at[lane_], first_));
  }

  void strip(const ops::Index& outer, Val j) {
    ops::Index index;
    for (size_t axis = 0, k = 0; axis < shape_.size(); ++axis) {
      const bool is_outer = axis != lane_ && !walks(axis);
      const bool varies = is_outer && shape_[axis] != Dim(1);
      index.push_back(axis == lane_ ? j : varies ? outer[k] : b_.i64(0));
      if (is_outer) ++k;
    }
    for (const ir::Value& reduction : reductions_) reduce(reduction, index);
    results(index, 0);
    for (const auto& state : states_) *state = State();
  }

  void reduce(const ir::Value& reduction, const ops::Index& index) {
    ops::Index at;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (reduction.shape().size() == shape_.size() || !walks(axis)) at.push_back(index[axis]);
    }
    frame_.context().element(reduction, at);
    for (const auto& state : states_) state->kept = state->touched;
  }

  void results(ops::Index& index, size_t level) {
    if (level == walked_.size()) return frame_.store_roots(index);
    const auto axis = static_cast<size_t>(walked_[level]);
    b_.loop(b_.i64(0), b_.dim(shape_[axis]), {}, [&](Val i) {
      index[axis] = i;
      results(index, level + 1);
    });
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const Shape& shape_;
  const std::vector<int>& walked_;
  size_t lane_ = 0;  // the axis of the lanes: the last one of more than one element
  Shape outer_;      // axes that are neither walked nor that one
  Dim height_;
  std::vector<ir::Value> reductions_;
  KeptColumns kept_;
  std::vector<std::shared_ptr<State>> states_;
  int64_t width_ = 0;    // columns of a strip
  Val first_ = nullptr;  // of this strip
};

}  // namespace

void lower_columns(KernelFrame& frame) { Columns(frame).emit(); }

}  // namespace tenon::passes
