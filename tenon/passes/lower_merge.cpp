#include <array>

#include "tenon/ops/order.h"
#include "tenon/passes/lower_sort.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;

constexpr int64_t kLanesPerIndex = 32;  // parts of the result that share a grid index
// Of a lane's part: an odd number of cache lines, so that the lanes' stores spread over the sets of
// the first cache; long against the bisection.
constexpr int64_t kPartBytes = 33 * 64;

class Merge {
 public:
  explicit Merge(KernelFrame& frame)
      : frame_(frame),
        b_(frame.builder()),
        node_(*frame.body().anchor.node),
        operand_(node_.operands[0]),
        order_(ops::order_of(operand_.dtype(), node_.attrs)),
        length_(operand_.shape().back()),
        kept_(node_.types[0].shape.back()),
        rows_(product(Shape(operand_.shape().begin(), operand_.shape().end() - 2))),
        part_(kPartBytes / static_cast<int64_t>(size_of(order_.dtype))),
        position_type_(length_.is_static() && length_.value() < (int64_t{1} << 29) ? Type::kI32
                                                                                   : Type::kI64) {}

  void emit() {
    const Dim share(part_ * kLanesPerIndex);
    const Dim blocks = floor_div(kept_ + share - Dim(1), share);
    frame_.grid_loop(rows_ * blocks, false, [&](Val g) {
      row_ = b_.index_div(g, blocks);
      const Val first = b_.mul(b_.index_rem(g, blocks), b_.i64(share.value()));
      const Val rest = b_.sub(b_.dim(kept_), first);
      // Parts that begin inside the result.
      const Val parts = b_.binary(
          Op::kSDiv, b_.add(b_.binary(Op::kSMin, rest, b_.i64(share.value())), b_.i64(part_ - 1)),
          b_.i64(part_));
      b_.loop(b_.i64(0), parts, {.vector = true, .interleave = 2}, [&](Val lane) {
        const Val begin = b_.add(first, b_.mul(lane, b_.i64(part_)));
        merge(begin);
      });
    });
  }

 private:
  static constexpr uint32_t kInput = 0;  // the buffer of the operand

  // Positions in a pair of rows: of 32 bits where they fit, twice as many lanes.
  Val position(int64_t value) { return b_.constant_int(position_type_, value); }
  Val to_position(Val value) {
    return position_type_ == Type::kI64 ? value : b_.convert(Op::kIntTrunc, position_type_, value);
  }

  // Element i of the pair of rows (the second one begins at n), by its bits; outside, bits that
  // come after all.
  Val bits_if(Val i, Val inside) {
    const Val first = b_.mul(row_, b_.mul(b_.dim(length_), b_.i64(2)));
    const Val wide = position_type_ == Type::kI64 ? i : b_.convert(Op::kSExt, Type::kI64, i);
    const Val last = b_.constant_int(kir::type_of(ops::bits_dtype(order_.dtype)),
                                     static_cast<int64_t>(ops::last_bits(order_)));
    const Val element = b_.load_if(kInput, b_.add(first, wide), inside,
                                   ops::element_of_bits(b_, last, order_.dtype));
    return ops::bits_of_element(b_, element, order_.dtype);
  }
  Val key(Val bits) { return ops::order_key(b_, bits, order_); }

  // How many of the first `begin` elements of the result come from the first row.
  Val bisect(Val begin) {
    const Val n = to_position(b_.dim(length_));
    const Val lo = b_.binary(Op::kSMax, b_.sub(begin, n), position(0));
    const Val hi = b_.binary(Op::kSMin, begin, n);
    const std::array<kir::CarriedSpec, 2> carried = {{{lo}, {hi}}};
    // Halvings that leave nothing of the row.
    const Val rounds = b_.sub(b_.i64(64), b_.unary(Op::kClz, b_.dim(length_)));
    return b_.loop(
        b_.i64(0), rounds, {}, carried, [&](Val, std::span<const Val> range) -> std::vector<Val> {
          const Val open = b_.cmp(Pred::kSLt, range[0], range[1]);
          const Val middle = b_.binary(Op::kLShr, b_.add(range[0], range[1]), position(1));
          const Val first = key(bits_if(middle, open));
          const Val across = b_.sub(b_.sub(b_.add(begin, n), position(1)), middle);
          const Val second = key(bits_if(across, open));
          const Val before = b_.cmp(Pred::kULe, first, second);
          const Val up = b_.binary(Op::kAnd, open, before);
          const Val down = b_.binary(Op::kAnd, open, b_.logical_not(before));
          return {b_.select(up, b_.add(middle, position(1)), range[0]),
                  b_.select(down, middle, range[1])};
        })[0];
  }

  // The elements from `begin` on.
  void merge(Val begin) {
    const Val n = to_position(b_.dim(length_));
    const Val end = b_.mul(n, position(2));
    const Val from = to_position(begin);
    const Val a = bisect(from);
    const Val c = b_.add(n, b_.sub(from, a));
    const Val first = bits_if(a, b_.cmp(Pred::kSLt, a, n));
    const Val second = bits_if(c, b_.cmp(Pred::kSLt, c, end));
    const std::array<kir::CarriedSpec, 4> carried = {{{a}, {c}, {first}, {second}}};
    b_.loop(b_.i64(0), b_.i64(part_), {}, carried,
            [&](Val i, std::span<const Val> in) -> std::vector<Val> {
              // Where the second row has ended, what stands for its element comes before none.
              const Val later = b_.binary(Op::kOr, b_.cmp(Pred::kSGe, in[0], n),
                                          b_.cmp(Pred::kULt, key(in[3]), key(in[2])));
              store(begin, i, b_.select(later, in[3], in[2]));
              const Val next = b_.add(b_.select(later, in[1], in[0]), position(1));
              const Val value = bits_if(next, b_.cmp(Pred::kSLt, next, b_.select(later, end, n)));
              return {b_.select(later, in[0], next), b_.select(later, next, in[1]),
                      b_.select(later, in[2], value), b_.select(later, value, in[3])};
            });
  }

  // Element begin + i of the result, where there is one.
  void store(Val begin, Val i, Val bits) {
    const Val kept = b_.dim(kept_);
    const Val inside =
        b_.cmp(Pred::kSLt, b_.add(to_position(begin), to_position(i)), to_position(kept));
    b_.store_if(frame_.root_buffer(0), b_.add(b_.add(b_.mul(row_, kept), begin), i),
                ops::element_of_bits(b_, bits, order_.dtype), inside);
  }

  KernelFrame& frame_;
  kir::Builder& b_;
  const ir::Node& node_;
  const ir::Value& operand_;
  ops::Order order_;
  Dim length_;
  Dim kept_;
  Dim rows_;
  int64_t part_;
  Type position_type_;
  Val row_ = nullptr;
};

}  // namespace

void lower_merge(KernelFrame& frame) { Merge(frame).emit(); }

}  // namespace tenon::passes
