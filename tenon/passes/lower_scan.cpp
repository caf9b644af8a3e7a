#include "tenon/passes/lower_scan.h"

#include <array>
#include <functional>

#include "tenon/ops/lower.h"
#include "tenon/ops/scan.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kLanesPerIndex = 256;  // lines that share a grid index along an inner axis
constexpr int64_t kLines = 16;           // lines along the last axis that are summed together
constexpr int64_t kTile = 64;            // of their elements, as many as are turned at a time
constexpr int64_t kFewLines = 4;         // fewer than this are not worth turning

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
        kind_(ops::scan_kind(node_)),
        sum_(ops::scan_dtype(kind_, operand_.dtype())) {}

  void emit() {
    if (axis_ + 1 == shape_.size()) {
      Shape outer(shape_.begin(), shape_.end() - 1);
      if (product(outer).upper_bound() >= kFewLines) return turned_lines(outer);
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
    const std::array<kir::CarriedSpec, 1> carried = {{{start()}}};
    b_.loop(
        b_.i64(0), length, {}, carried,
        [&](Val i, std::span<const Val> before) -> std::vector<Val> {
          Val at = i;
          if (reverse_) {
            at = b_.sub(b_.sub(length, b_.i64(1)), i);
            b_.set_bound(at, shape_[axis_]);
          }
          index[axis_] = at;
          Val x = frame_.context().element(operand_, index);
          return {step(before[0], x, frame_.root_buffer(0), ops::flatten_index(b_, shape_, index))};
        });
  }

  Val start() { return ops::emit_scan_start(b_, kind_, operand_.dtype()); }

  // Scratch of a thread: a tile as it stands in memory, turned, and summed; the sums so far.
  struct Tiles {
    uint32_t plain;
    uint32_t turned;
    uint32_t summed;
    uint32_t sums;
  };

  void turned_lines(const Shape& outer) {
    const Tiles tiles{b_.add_scratch("tile", operand_.dtype(), Dim(kLines * kTile)),
                      b_.add_scratch("turned", operand_.dtype(), Dim(kLines * kTile)),
                      b_.add_scratch("summed", result_, Dim(kLines * kTile)),
                      b_.add_scratch("sums", sum_, Dim(kLines))};
    const Dim lines = product(outer);
    const Val length = b_.dim(shape_.back());
    frame_.grid_loop(ceil_div(lines, Dim(kLines)), false, [&](Val g) {
      const Val first = b_.mul(g, b_.i64(kLines));
      const Val count = b_.binary(kir::Op::kSMin, b_.i64(kLines), b_.sub(b_.dim(lines), first));
      all_lanes([&](Val lane) { b_.store(tiles.sums, lane, start()); });
      b_.loop(b_.i64(0), length, {.step = kTile}, [&](Val done) {
        const Val width = shape_.back().known_divisor() % kTile == 0
                              ? b_.i64(kTile)
                              : b_.binary(kir::Op::kSMin, b_.i64(kTile), b_.sub(length, done));
        const Val from = reverse_ ? b_.sub(b_.sub(length, done), width) : done;
        b_.loop(b_.i64(0), count, {}, [&](Val line) {
          const Val row = b_.add(first, line);
          b_.set_bound(row, lines);
          read_line(tiles.plain, ops::unflatten_index(b_, outer, row), line, from, width);
        });
        b_.transpose({tiles.turned, b_.i64(0), b_.i64(kLines)},
                     {tiles.plain, b_.i64(0), b_.i64(kTile)}, count, width);
        all_lanes([&](Val lane) { sum_lane(tiles, lane, width); });
        const Val to = b_.add(b_.mul(first, length), from);
        b_.transpose({frame_.root_buffer(0), to, length}, {tiles.summed, b_.i64(0), b_.i64(kLines)},
                     width, count, frame_.streams(0));
      });
    });
  }

  void all_lanes(const std::function<void(Val)>& body) {
    b_.loop(b_.i64(0), b_.i64(kLines), {.vector = true, .interleave = 2}, body);
  }

  // Elements from .. from + width of a line, and a call for those after them.
  void read_line(uint32_t plain, ops::Index index, Val line, Val from, Val width) {
    const kir::LoopSpec spec{.vector = true, .ahead = reverse_ ? 0 : kTile};
    b_.loop(b_.i64(0), width, spec, [&](Val k) {
      const Val at = b_.add(from, k);
      b_.set_bound(at, shape_.back());
      index.push_back(at);
      b_.store(plain, b_.add(b_.mul(line, b_.i64(kTile)), k),
               frame_.context().element(operand_, index));
      index.pop_back();
    });
  }

  // Lanes beyond the last line add up what is left there; nobody reads it.
  void sum_lane(const Tiles& tiles, Val lane, Val width) {
    const std::array<kir::CarriedSpec, 1> carried = {{{b_.load(tiles.sums, lane)}}};
    const Val sum = b_.loop(b_.i64(0), width, {}, carried,
                            [&](Val i, std::span<const Val> before) -> std::vector<Val> {
                              const Val k = reverse_ ? b_.sub(b_.sub(width, b_.i64(1)), i) : i;
                              const Val at = b_.add(b_.mul(k, b_.i64(kLines)), lane);
                              return {step(before[0], b_.load(tiles.turned, at), tiles.summed, at)};
                            })[0];
    b_.store(tiles.sums, lane, sum);
  }

  // Adds an element to what was before it and stores what belongs in its place; what is after it.
  Val step(Val before, Val element, uint32_t buffer, Val place) {
    const Val term = ops::cast(b_, element, operand_.dtype(), sum_);
    const Val sum = ops::emit_scan_step(b_, kind_, sum_, before, term);
    b_.store(buffer, place, ops::cast(b_, exclusive_ ? before : sum, sum_, result_));
    return sum;
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
  ops::ScanKind kind_;
  DType sum_;  // of what is carried along a line
};

}  // namespace

void lower_scan(KernelFrame& frame) { Scan(frame).emit(); }

}  // namespace tenon::passes
