#include "tenon/passes/lower_scan.h"

#include <array>

#include "tenon/ops/lower.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kLanesPerIndex = 256;  // lines that share a grid index along an inner axis

class Scan {
 public:
  explicit Scan(KernelFrame& frame)
      : frame_(frame),
        b_(frame.builder()),
        node_(*frame.body().anchor.node),
        operand_(node_.operands[0]),
        shape_(operand_.shape()),
        axis_(static_cast<size_t>(node_.attrs.i("axis"))),
        reverse_(node_.attrs.b("reverse")),
        exclusive_(node_.attrs.b("exclusive")),
        result_(node_.types[0].dtype),
        sum_(is_float(result_) ? DType::kF64 : result_) {}

  void emit() {
    if (axis_ + 1 == shape_.size()) {
      Shape outer(shape_.begin(), shape_.end() - 1);
      frame_.grid_loop(product(outer), false, [&](Val g) {
        ops::Index index = ops::unflatten_index(b_, outer, g);
        index.push_back(nullptr);
        line(index);
      });
      return;
    }
    Shape outer(shape_.begin(), shape_.end() - 1);
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(axis_));
    const Dim& last = shape_.back();
    const Dim blocks = floor_div(last + Dim(kLanesPerIndex - 1), Dim(kLanesPerIndex));
    frame_.grid_loop(product(outer) * blocks, false, [&](Val g) {
      ops::Index index = ops::unflatten_index(b_, outer, b_.index_div(g, blocks));
      index.insert(index.begin() + static_cast<ptrdiff_t>(axis_), nullptr);
      Val first = b_.mul(b_.index_rem(g, blocks), b_.i64(kLanesPerIndex));
      Val end = b_.binary(kir::Op::kSMin, b_.add(first, b_.i64(kLanesPerIndex)), b_.dim(last));
      kir::LoopSpec spec;
      spec.vector = true;
      b_.loop(first, end, spec, [&](Val lane) {
        b_.set_bound(lane, last);
        index.push_back(lane);
        line(index);
        index.pop_back();
      });
    });
  }

 private:
  // One line; the entry of the axis in `index` is filled in here.
  void line(ops::Index& index) {
    const Val length = b_.dim(shape_[axis_]);
    const kir::Type type = kir::type_of(sum_);
    const Val zero = kir::is_float(type) ? b_.constant_float(type, 0) : b_.constant_int(type, 0);
    const std::array<kir::CarriedSpec, 1> carried = {{{zero}}};
    b_.loop(b_.i64(0), length, {}, carried,
            [&](Val i, std::span<const Val> before) -> std::vector<Val> {
              Val at = i;
              if (reverse_) {
                at = b_.sub(b_.sub(length, b_.i64(1)), i);
                b_.set_bound(at, shape_[axis_]);
              }
              index[axis_] = at;
              Val x = frame_.context().element(operand_, index);
              Val sum = b_.add(before[0], ops::cast(b_, x, operand_.dtype(), sum_));
              Val out = ops::cast(b_, exclusive_ ? before[0] : sum, sum_, result_);
              b_.store(frame_.root_buffer(0), ops::flatten_index(b_, shape_, index), out);
              return {sum};
            });
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const ir::Node& node_;
  const ir::Value& operand_;
  const Shape& shape_;
  size_t axis_;
  bool reverse_;
  bool exclusive_;
  DType result_;
  DType sum_;
};

}  // namespace

void lower_scan(KernelFrame& frame) { Scan(frame).emit(); }

}  // namespace tenon::passes
