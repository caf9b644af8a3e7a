// A tile of rows in words: products, limits, weights. Lanes are rows.
#include <array>
#include <cmath>

#include "tenon/passes/attention_scores.h"
#include "tenon/passes/attention_weights.h"
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
constexpr int64_t kPairs = Kernel::kWordKeys / 2;
constexpr kir::LoopSpec kLanes{.vector = true, .interleave = 2, .multiple = kRows};

// Place of key c, or pair of keys c, in the lines of scores and weights.
Val line_of(Kernel& a, Val c, Val j) { return a.b.add(a.b.mul(c, a.b.i64(kRows)), j); }

void multiply_keys(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  kir::PanelDot dot{.left = a.words.keys, .right = a.words.queries, .rows = kPanel};
  dot.left_stride = a.depth_words;
  Val queries = b.mul(t, b.i64(a.depth_words * kRows));
  b.loop(a.from, a.panels_end, {.step = kPanel}, [&](Val c) {
    b.panel_dot(dot, a.scores, b.mul(c, b.i64(kRows)), b.mul(c, b.i64(a.depth_words)), queries,
                b.i64(a.depth_words), b.boolean(false));
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
    b.loop(a.from, a.panels_end, {}, [&](Val c) {
      Val key = b.convert(Op::kIntTrunc, Type::kI32, c);
      Val score = b.load(a.scores, line_of(a, c, j));
      score = b.select(b.cmp(Pred::kSLt, key, high), score, a.lowest());
      if (a.parts.window > 0) score = b.select(b.cmp(Pred::kSLt, key, low), a.lowest(), score);
      b.store(a.scores, line_of(a, c, j), score);
    });
  });
}

// The largest scores; NaN is passed over here and makes the weights NaN.
Val largest(Kernel& a, Val j) {
  constexpr int64_t kChains = 4;
  const std::vector<kir::CarriedSpec> init(kChains, {a.lowest()});
  const std::vector<Val> most = a.b.loop(
      a.from, a.panels_end, {.step = kChains}, init, [&](Val c, std::span<const Val> before) {
        std::vector<Val> next;
        for (int64_t k = 0; k < kChains; ++k) {
          Val score = a.b.load(a.scores, line_of(a, a.b.add(c, a.b.i64(k)), j));
          next.push_back(a.b.binary(Op::kFMaxFast, score, before[static_cast<size_t>(k)]));
        }
        return next;
      });
  Val all = most[0];
  for (size_t k = 1; k < most.size(); ++k) all = a.b.binary(Op::kFMaxFast, all, most[k]);
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
      Val at = b.add(sums, line_of(a, e, j));
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
  Val factor = a.number(std::abs(a.parts.scale) * kLog2E);
  Val first = b.binary(Op::kSDiv, a.from, b.i64(2));
  Val end = b.binary(Op::kSDiv, a.panels_end, b.i64(2));
  b.loop(b.i64(0), b.i64(kRows), kLanes, [&](Val j) {
    Val base = raise_bases(a, t, j, b.mul(largest(a, j), factor));
    Val minus = b.unary(Op::kNeg, base);
    const std::array<kir::CarriedSpec, 2> init = {{{a.number(0)}, {a.number(0)}}};
    const std::vector<Val> sums = b.loop(
        first, end, {}, init, [&](Val pair, std::span<const Val> before) -> std::vector<Val> {
          std::vector<Val> next;
          std::array<std::array<Val, Kernel::kWordTerms>, 2> terms{};
          for (int64_t k = 0; k < 2; ++k) {
            Val c = b.add(b.mul(pair, b.i64(2)), b.i64(k));
            Val score = b.load(a.scores, line_of(a, c, j));
            Val weight = weight_of(a, a.muladd(score, factor, minus));
            terms[static_cast<size_t>(k)] = terms_of(a, weight);
            next.push_back(b.add(before[static_cast<size_t>(k)], weight));
          }
          for (int64_t i = 0; i < Kernel::kWordTerms; ++i) {
            const auto k = static_cast<size_t>(i);
            Val low = b.binary(Op::kLShr, terms[0][k], b.constant_int(Type::kI32, 16));
            Val word = b.binary(Op::kOr, low, terms[1][k]);
            b.store(a.words.weights, line_of(a, b.add(pair, b.i64(i * kPairs)), j), word);
          }
          return next;
        });
    Val row = b.add(a.tile_row, j);
    b.store(a.totals, row, b.add(b.load(a.totals, row), b.add(sums[0], sums[1])));
  });
}

void multiply_values(Kernel& a, Val t) {
  kir::Builder& b = a.b;
  kir::PanelDot dot{.left = a.words.values, .right = a.words.weights};
  dot.left_stride = a.value_stride;
  Val first = b.binary(Op::kSDiv, a.from, b.i64(2));
  Val count = b.sub(b.binary(Op::kSDiv, a.panels_end, b.i64(2)), first);
  for (int64_t e = 0; e < a.columns.value(); e += kir::kPanelDotRows) {
    dot.rows = std::min(kir::kPanelDotRows, a.columns.value() - e);
    Val sums = b.add(b.mul(t, b.i64(a.word_columns * kRows)), b.i64(e * kRows));
    Val left = b.add(b.i64(e * a.value_stride), first);
    for (int64_t i = 0; i < Kernel::kWordTerms; ++i) {
      Val right = b.mul(b.add(first, b.i64(i * kPairs)), b.i64(kRows));
      b.panel_dot(dot, a.words.sums, sums, left, right, count, b.boolean(true));
    }
  }
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
  a.if_reached(outer.low, outer.high, [&](Val, Val) {
    multiply_keys(a, t);
    if (a.bounded || a.ends_in_panel()) {
      Val after = b.cmp(Pred::kSLt, inner.high, b.add(a.first_key, a.panels_end));
      Val before = b.cmp(Pred::kSGt, inner.low, b.add(a.first_key, a.from));
      b.if_then(b.binary(Op::kOr, after, before), [&] { limit_scores(a); });
    }
    weigh(a, t);
    multiply_values(a, t);
  });
}

}  // namespace tenon::passes
