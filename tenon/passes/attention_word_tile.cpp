// A tile of rows in words: products, limits, weights. Lanes are rows.
#include <array>
#include <cmath>

#include "tenon/passes/attention_scores.h"
#include "tenon/passes/attention_weights.h"
#include "tenon/passes/attention_word_mask.h"
#include "tenon/passes/attention_words.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using Kernel = AttentionKernel;

constexpr int64_t kRows = Kernel::kWordRows;
constexpr int64_t kPanel = Kernel::kPanel;
constexpr kir::LoopSpec kLanes{.vector = true, .interleave = 2, .multiple = kRows};

// Even keys and odd ones, so that the scores of a pair stand together.
void multiply_keys(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  kir::PanelDot dot{.left = a.words.keys, .right = a.words.queries, .rows = kPanel / 2};
  dot.left_stride = 2 * a.depth_words;
  dot.sums_stride = Kernel::kPairStride;
  Val queries = b.mul(t, b.i64(a.depth_words * kRows));
  b.loop(a.first_pair(), a.pairs_end(), {.step = kPanel / 2}, [&](Val pair) {
    for (int64_t k = 0; k < 2; ++k) {
      Val key = b.add(b.mul(pair, b.i64(2)), b.i64(k));
      b.panel_dot(dot, a.words.scores, word_score_at(a, pair, k, b.i64(0)),
                  b.mul(key, b.i64(a.depth_words)), queries, b.i64(a.depth_words),
                  b.boolean(false));
    }
  });
}

// Scores of keys that a row does not reach are -inf.
void limit_scores(Kernel& a) {
  kir::Builder& b = a.b;
  const auto bound = [&](Val key) {
    Val at = a.at_least(b.sub(key, a.first_key), b.i64(0));
    return b.convert(Op::kIntTrunc, Type::kI32, a.at_most(at, b.i64(Kernel::kWordKeys)));
  };
  b.loop(b.i64(0), b.i64(kRows), {}, [&](Val r) {
    const Kernel::Row row = a.row_at(a.clamped_row(b.add(a.tile_row, r)));
    b.store(a.words.low, r, bound(row.low));
    b.store(a.words.high, r, bound(row.high));
  });
  b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
    Val low = b.load(a.words.low, j);
    Val high = b.load(a.words.high, j);
    b.loop(a.first_pair(), a.pairs_end(), {}, [&](Val pair) {
      for (int64_t k = 0; k < 2; ++k) {
        Val key = b.add(b.mul(pair, b.i64(2)), b.i64(k));
        key = b.convert(Op::kIntTrunc, Type::kI32, key);
        Val at = word_score_at(a, pair, k, j);
        Val score = b.select(b.cmp(Pred::kSLt, key, high), b.load(a.words.scores, at), a.lowest());
        if (a.parts.window > 0) score = b.select(b.cmp(Pred::kSLt, key, low), a.lowest(), score);
        b.store(a.words.scores, at, score);
      }
    });
  });
}

// Whether the mask is put on in `largest`: no pass for the limits comes between.
bool masks_late(const Kernel& a) { return a.parts.mask && !a.bounded && !a.ends_in_panel(); }

// The largest scores; NaN is passed over here and makes the weights NaN.
Val largest(Kernel& a, Val j) {
  kir::Builder& b = a.b;
  constexpr int64_t kPairs = 2;
  const std::vector<kir::CarriedSpec> init(2 * kPairs, {a.lowest()});
  const auto scores_of = [&](Val pair) -> std::array<Val, 2> {
    if (masks_late(a)) return mask_pair(a, pair, j);
    return {b.load(a.words.scores, word_score_at(a, pair, 0, j)),
            b.load(a.words.scores, word_score_at(a, pair, 1, j))};
  };
  const std::vector<Val> most =
      b.loop(a.first_pair(), a.pairs_end(), {.step = kPairs}, init,
             [&](Val pair, std::span<const Val> before) {
               std::vector<Val> next;
               for (int64_t i = 0; i < kPairs; ++i) {
                 for (Val score : scores_of(b.add(pair, b.i64(i)))) {
                   next.push_back(b.binary(Op::kFMaxFast, score, before[next.size()]));
                 }
               }
               return next;
             });
  Val all = most[0];
  for (size_t k = 1; k < most.size(); ++k) all = b.binary(Op::kFMaxFast, all, most[k]);
  return all;
}

// Makes `most` the base of the rows whose scores pass the margin, and their sums smaller.
Val raise_bases(Kernel& a, Val t, Val j, Val most) {
  kir::Builder& b = a.b;
  Val row = b.add(a.tile_row, j);
  Val old = b.load(a.top, row);
  Val raised = b.cmp(Pred::kFGt, most, b.add(old, a.number(kMargin)));
  Val top = b.select(raised, most, old);
  b.rarely(raised, {}, [&](std::span<const Val>) -> std::vector<Val> {
    Val shrink = b.select(raised, weight_of(a, b.sub(old, top)), a.number(1));
    b.store(a.top, row, top);
    b.store(a.totals, row, b.mul(b.load(a.totals, row), shrink));
    Val sums = b.mul(t, b.i64(a.word_columns * kRows));
    b.loop(b.i64(0), b.dim(a.columns), {}, [&](Val e) {
      Val at = b.add(b.add(sums, b.mul(e, b.i64(kRows))), j);
      b.store(a.words.sums, at, b.mul(b.load(a.words.sums, at), shrink));
    });
    return {};
  });
  return b.select(b.cmp(Pred::kEq, top, a.lowest()), a.number(0), top);
}

// A weight as bf16 numbers, each of which cuts off what the ones before leave: the upper halves of
// what is returned; the lower ones are 0, also where a number is too small to be normal.
std::array<Val, Kernel::kWordTerms> terms_of(Kernel& a, Val weight) {
  std::array<Val, Kernel::kWordTerms> terms{};
  for (Val& term : terms) {
    if (&term != terms.data()) {
      Val before = a.b.convert(Op::kBitcast, Type::kF32, *(&term - 1));
      weight = a.b.sub(weight, before);
    }
    Val bits = a.b.convert(Op::kBitcast, Type::kI32, weight);
    term = a.b.binary(Op::kAnd, bits, a.b.constant_int(Type::kI32, -0x10000));
  }
  return terms;
}

void weigh(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  const bool scaled = a.parts.mask && a.parts.mask->dtype() != DType::kBool;
  Val factor = a.number(scaled ? 1 : std::abs(a.parts.scale) * kLog2E);
  Val first = a.first_pair();
  Val end = a.pairs_end();
  b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
    Val base = raise_bases(a, t, j, b.mul(largest(a, j), factor));
    Val minus = b.unary(Op::kNeg, base);
    const std::array<kir::CarriedSpec, 2> init = {{{a.number(0)}, {a.number(0)}}};
    const std::vector<Val> sums = b.loop(
        first, end, {}, init, [&](Val pair, std::span<const Val> before) -> std::vector<Val> {
          std::vector<Val> next;
          std::array<std::array<Val, Kernel::kWordTerms>, 2> terms{};
          for (int64_t k = 0; k < 2; ++k) {
            Val score = b.load(a.words.scores, word_score_at(a, pair, k, j));
            Val weight = weight_of(a, a.muladd(score, factor, minus));
            terms[static_cast<size_t>(k)] = terms_of(a, weight);
            next.push_back(b.add(before[static_cast<size_t>(k)], weight));
          }
          for (int64_t i = 0; i < Kernel::kWordTerms; ++i) {
            const auto k = static_cast<size_t>(i);
            Val low = b.binary(Op::kLShr, terms[0][k], b.constant_int(Type::kI32, 16));
            Val word = b.binary(Op::kOr, low, terms[1][k]);
            b.store(a.words.scores, word_score_at(a, pair, i, j),
                    b.convert(Op::kBitcast, Type::kF32, word));
          }
          return next;
        });
    Val row = b.add(a.tile_row, j);
    b.store(a.totals, row, b.add(b.load(a.totals, row), b.add(sums[0], sums[1])));
  });
}

void multiply_values(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  kir::PanelDot dot{.left = a.words.values, .right = a.words.scores};
  dot.left_stride = a.value_stride;
  dot.terms = Kernel::kWordTerms;
  dot.term_step = kRows;
  dot.right_stride = Kernel::kPairStride;
  Val first = a.first_pair();
  Val count = b.sub(a.pairs_end(), first);
  for (int64_t e = 0; e < a.columns.value(); e += kir::kPanelDotRows) {
    dot.rows = std::min(kir::kPanelDotRows, a.columns.value() - e);
    Val sums = b.add(b.mul(t, b.i64(a.word_columns * kRows)), b.i64(e * kRows));
    Val left = b.add(b.i64(e * a.value_stride), first);
    Val right = b.mul(first, b.i64(Kernel::kPairStride));
    b.panel_dot(dot, a.words.sums, sums, left, right, count, b.boolean(true));
  }
}

// The mask and the limits of the tile's scores.
void finish_scores(Kernel& a, const Kernel::Row& inner) {
  kir::Builder& b = a.b;
  if (a.parts.mask && !masks_late(a)) {
    b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
      b.loop(a.first_pair(), a.pairs_end(), {}, [&](Val pair) { mask_pair(a, pair, j); });
    });
  }
  if (!a.bounded && !a.ends_in_panel()) return;
  Val after = b.cmp(Pred::kSLt, inner.high, b.add(a.first_key, a.met.end));
  Val before = b.cmp(Pred::kSGt, inner.low, b.add(a.first_key, a.met.from));
  b.if_then(b.binary(Op::kOr, after, before), [&] { limit_scores(a); });
}

}  // namespace

void emit_word_tile(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  a.tile_row = b.mul(t, b.i64(kRows));
  // All rows reach the keys from `inner.low` to `inner.high`, some row those of `outer`.
  Kernel::Row inner{};
  Kernel::Row outer{};
  if (a.per_group == 1) {
    Val first = a.clamped_row(a.tile_row);
    Val last = a.clamped_row(b.add(a.tile_row, b.i64(kRows - 1)));
    a.set_reach(outer, first, last);
    a.set_reach(inner, last, first);
  } else {
    Val last = b.sub(b.dim(a.queries), b.i64(1));
    a.set_reach(outer, b.i64(0), last);
    a.set_reach(inner, last, b.i64(0));
  }
  a.met = a.meet(outer.low, outer.high);
  b.if_then(a.met.any, [&] {
    if (a.parts.mask) read_mask(a);
    multiply_keys(a, t);
    finish_scores(a, inner);
    weigh(a, t);
    multiply_values(a, t);
  });
}

}  // namespace tenon::passes
