#include "tenon/passes/lower_round_rows.h"

#include <array>
#include <limits>

#include "tenon/ops/lower.h"
#include "tenon/ops/packed_qmatmul.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Type;
using kir::Val;
using ops::kQuantBlock;

}  // namespace

void lower_round_rows(KernelFrame& frame) {
  kir::Builder& b = frame.builder();
  const ir::Node& node = *frame.body().anchor.node;
  const ir::Value& x = node.operands[0];
  const int64_t group = node.attrs.i("group");
  const Shape& blocks = node.types[1].shape;
  const Val zero = b.constant_float(Type::kF32, 0);
  frame.grid_loop(product(blocks), false, [&](Val g) {
    ops::Index index = ops::unflatten_index(b, blocks, g);
    const Val first = b.mul(index.back(), b.i64(kQuantBlock));
    const auto element = [&](Val i) {
      index.back() = b.add(first, i);
      return frame.context().element(x, index);
    };
    kir::LoopSpec spec{.vector = true, .multiple = kQuantBlock};
    const std::array<kir::CarriedSpec, 1> none = {{{zero, kir::Combine::kFMax}}};
    const Val largest =
        b.loop(b.i64(0), b.i64(kQuantBlock), spec, none,
               [&](Val i, std::span<const Val> before) -> std::vector<Val> {
                 return {b.binary(Op::kFMax, before[0], b.unary(Op::kAbs, element(i)))};
               })[0];
    const Val step = b.binary(Op::kDiv, largest, b.constant_float(Type::kF32, 127));
    const Val inverse = b.binary(Op::kDiv, b.constant_float(Type::kF32, 1), step);
    const Val limit = b.constant_float(Type::kF32, std::numeric_limits<double>::infinity());
    const Val usable = b.select(b.cmp(kir::Pred::kFLt, inverse, limit), inverse, zero);
    b.store(frame.root_buffer(1), g, step);

    const Val flat = b.mul(g, b.i64(kQuantBlock));
    const Val sum = b.mul(g, b.i64(kQuantBlock / group));
    spec.multiple = group;
    for (int64_t from = 0; from < kQuantBlock; from += group) {
      const std::array<kir::CarriedSpec, 1> empty = {{{zero, kir::Combine::kAdd}}};
      const Val total = b.loop(b.i64(from), b.i64(from + group), spec, empty,
                               [&](Val i, std::span<const Val> before) -> std::vector<Val> {
                                 const Val code = b.unary(Op::kRint, b.mul(element(i), usable));
                                 const Val whole = b.convert(Op::kFToS, Type::kI32, code);
                                 b.store(frame.root_buffer(0), b.add(flat, i),
                                         b.convert(Op::kIntTrunc, Type::kI8, whole));
                                 return {b.add(before[0], b.convert(Op::kSToF, Type::kF32, whole))};
                               })[0];
      b.store(frame.root_buffer(2), b.add(sum, b.i64(from / group)), total);
    }
  });
}

}  // namespace tenon::passes
