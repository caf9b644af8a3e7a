#include "tenon/passes/attention_weights.h"

#include <array>

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Val;
using Kernel = AttentionKernel;

constexpr int64_t kPanel = Kernel::kPanel;
// A loop over the columns of a panel.
constexpr kir::LoopSpec kSlots{.vector = true, .interleave = 2, .multiple = kPanel};

// (2^r - 1) / r for |r| ≤ 1/2, the largest relative error of 2^r least: 1.5 · 2^-24.
constexpr std::array<double, 5> kPowers = {0x1.62e42ap-1, 0x1.ebf9bcp-3, 0x1.c6b752p-5,
                                           0x1.3cea88p-7, 0x1.5bba14p-10};

Val weight_of_f32(Kernel& a, Val x) {
  kir::Builder& b = a.b;
  // Adding 1.5 · 2^23 rounds to whole numbers, which stand in the lowest bits, plus the bias.
  Val shift = a.number(0x1.8p23 + 127);
  Val shifted = b.add(x, shift);
  Val r = b.sub(x, b.sub(shifted, shift));
  Val value = a.number(kPowers.back());
  for (size_t i = kPowers.size() - 1; i-- > 0;) value = a.muladd(value, r, a.number(kPowers[i]));
  value = a.muladd(value, r, a.number(1));
  Val bits = b.convert(Op::kBitcast, kir::Type::kI32, shifted);
  Val power = b.binary(Op::kShl, bits, b.constant_int(kir::Type::kI32, 23));
  Val weight = b.mul(value, b.convert(Op::kBitcast, kir::Type::kF32, power));
  return b.select(b.cmp(Pred::kFLt, x, a.number(-125)), a.number(0), weight);
}

// The largest scores of row r of the tile in each slot; says whether one passes the margin. A NaN
// score is passed over here and makes the weights NaN.
void find_maxima(Kernel& a, Val r, Val limit) {
  kir::Builder& b = a.b;
  Val line = b.mul(r, b.i64(Kernel::kScoreStride));
  const std::array<kir::CarriedSpec, 1> init = {{{a.lowest()}}};
  b.store(a.raises, b.i64(0), b.boolean(false));
  b.loop(b.i64(0), b.i64(kPanel), kSlots, [&](Val j) {
    Val most = b.loop(a.met.first_panel, a.met.panels, {}, init,
                      [&](Val p, std::span<const Val> before) -> std::vector<Val> {
                        Val at = b.add(line, b.add(b.mul(p, b.i64(kPanel)), j));
                        return {b.binary(Op::kFMaxFast, b.load(a.scores, at), before[0])};
                      })[0];
    b.store(a.maxima, j, most);
    b.rarely(b.cmp(Pred::kFGt, most, limit), {}, [&](std::span<const Val>) -> std::vector<Val> {
      b.store(a.raises, b.i64(0), b.boolean(true));
      return {};
    });
  });
}

// Makes the largest score the base of row r of the tile and the sums so far smaller.
void raise_base(Kernel& a, Val r, Val row) {
  const std::array<kir::CarriedSpec, 1> init = {{{a.lowest(), kir::Combine::kFMax}}};
  const kir::LoopSpec spec{.vector = true, .multiple = kPanel};
  Val top = a.b.loop(a.b.i64(0), a.b.i64(kPanel), spec, init,
                     [&](Val j, std::span<const Val> before) -> std::vector<Val> {
                       return {a.b.binary(Op::kFMaxFast, a.b.load(a.maxima, j), before[0])};
                     })[0];
  a.b.store(a.shrink, r, weight_of(a, a.b.sub(a.b.load(a.top, row), top)));
  a.b.store(a.top, row, top);
}

// Each slot sums the weights of one column of the panels: lanes meet only in total_of.
void weigh_row(Kernel& a, Val r, Val base) {
  Val line = a.b.mul(r, a.b.i64(Kernel::kScoreStride));
  Val slots = a.b.mul(a.b.add(a.tile_row, r), a.b.i64(kPanel));
  Val shrink = a.b.load(a.shrink, r);
  a.b.loop(a.b.i64(0), a.b.i64(kPanel), kSlots, [&](Val j) {
    Val slot = a.b.add(slots, j);
    const std::array<kir::CarriedSpec, 1> init = {{{a.b.mul(a.b.load(a.totals, slot), shrink)}}};
    Val sum = a.b.loop(a.met.first_panel, a.met.panels, {}, init,
                       [&](Val p, std::span<const Val> before) -> std::vector<Val> {
                         Val at = a.b.add(line, a.b.add(a.b.mul(p, a.b.i64(kPanel)), j));
                         Val weight = weight_of(a, a.b.sub(a.b.load(a.scores, at), base));
                         a.b.store(a.scores, at, weight);
                         return {a.b.add(before[0], weight)};
                       })[0];
    a.b.store(a.totals, slot, sum);
  });
}

}  // namespace

Val weight_of(Kernel& a, Val x) {
  return a.type == kir::Type::kF32 ? weight_of_f32(a, x) : a.b.unary(Op::kExp2, x);
}

void emit_weights(Kernel& a) {
  a.b.loop(a.b.i64(0), a.b.i64(a.tile), {}, [&](Val r) {
    Val row = a.b.add(a.tile_row, r);
    find_maxima(a, r, a.b.add(a.b.load(a.top, row), a.number(kMargin)));
    a.b.store(a.shrink, r, a.number(1));
    a.b.if_then(a.b.load(a.raises, a.b.i64(0)), [&] { raise_base(a, r, row); });
    Val top = a.b.load(a.top, row);
    weigh_row(a, r, a.b.select(a.b.cmp(Pred::kEq, top, a.lowest()), a.number(0), top));
  });
}

Val total_of(Kernel& a, Val r) {
  if (a.in_words()) return a.b.load(a.totals, r);
  Val slots = a.b.mul(r, a.b.i64(kPanel));
  const std::array<kir::CarriedSpec, 1> init = {{{a.number(0), kir::Combine::kAdd}}};
  const kir::LoopSpec spec{.vector = true, .multiple = kPanel};
  return a.b.loop(a.b.i64(0), a.b.i64(kPanel), spec, init,
                  [&](Val j, std::span<const Val> before) -> std::vector<Val> {
                    return {a.b.add(before[0], a.b.load(a.totals, a.b.add(slots, j)))};
                  })[0];
}

}  // namespace tenon::passes
