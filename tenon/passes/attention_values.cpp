#include "tenon/passes/attention_values.h"

#include <array>

#include "tenon/passes/attention_scores.h"
#include "tenon/passes/attention_weights.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Val;
using ops::Index;
using Kernel = AttentionKernel;

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Columns e … of the sums.
void add_columns(Kernel& a, Val e) {
  const bool whole =
      a.packs_values() || (a.columns.is_static() && a.columns.value() % a.panel == 0);
  Val inside = whole ? nullptr : a.b.cmp(Pred::kSLt, e, a.b.dim(a.columns));
  Val stride = a.b.dim(a.sums_stride);
  const auto place = [&](int64_t r) {
    return a.b.add(a.b.mul(a.b.add(a.tile_row, a.b.i64(r)), stride), e);
  };
  std::vector<kir::CarriedSpec> init;
  for (int64_t r = 0; r < a.tile; ++r) {
    init.push_back({a.b.mul(a.b.load(a.sums, place(r)), a.b.load(a.shrink, a.b.i64(r)))});
  }
  const std::vector<Val> sums = multiply_rows(
      a, a.met.from, a.met.count, init,
      [&](int64_t r, Val c) { return a.b.load(a.scores, score_at(a, r, c)); },
      [&](Val c) {
        if (a.packs_values()) return a.b.load(a.values, a.b.add(a.b.mul(c, stride), e));
        return a.shared_element(a.parts.v, a.b.add(a.first_key, c), e, inside);
      });
  for (int64_t r = 0; r < a.tile; ++r) {
    a.b.store(a.sums, place(r), sums[static_cast<size_t>(r)]);
  }
}

// `value`, or where it is not finite the sum over the keys that the row sees.
Val seen_alone(Kernel& a, const Kernel::Row& row, Val r, Val e, Val factor, Val value) {
  Val wrong = a.b.cmp(Pred::kUno, a.b.sub(value, value), a.number(0));
  Val base = a.b.load(a.top, r);
  const std::array<Val, 1> init = {value};
  return a.b.rarely(wrong, init, [&](std::span<const Val> given) -> std::vector<Val> {
    const std::array<kir::CarriedSpec, 1> from_zero = {{{a.number(0)}}};
    Val sum = a.b.loop(row.low, row.high, {}, from_zero,
                       [&](Val t, std::span<const Val> before) -> std::vector<Val> {
                         Val score = score_of(a, row, t);
                         Val weight = weight_of(a, a.b.sub(score, base));
                         Val y = a.shared_element(a.parts.v, t, e, nullptr);
                         Val more = a.muladd(weight, y, before[0]);
                         Val unseen = a.b.cmp(Pred::kEq, score, a.lowest());
                         return {a.b.select(unseen, before[0], more)};
                       })[0];
    return {a.b.select(wrong, a.b.mul(sum, factor), given[0])};
  })[0];
}

}  // namespace

void pack_values(Kernel& a) {
  Val count = a.at_most(a.b.i64(Kernel::kKeyBlock), a.b.sub(a.b.dim(a.keys), a.first_key));
  a.b.loop(a.b.i64(0), count, {}, [&](Val c) {
    Val line = a.b.mul(c, a.b.dim(a.sums_stride));
    a.b.loop(a.b.i64(0), a.b.dim(a.columns), {.vector = true}, [&](Val e) {
      Val x = a.shared_element(a.parts.v, a.b.add(a.first_key, c), e, nullptr);
      a.b.store(a.values, a.b.add(line, e), x);
    });
  });
}

void add_values(Kernel& a) {
  const kir::LoopSpec spec{.vector = true, .interleave = a.interleave, .multiple = a.panel};
  a.b.loop(a.b.i64(0), a.b.dim(ceil_div(a.columns, Dim(a.panel))), {}, [&](Val p) {
    a.b.loop(a.b.i64(0), a.b.i64(a.panel), spec,
             [&](Val j) { add_columns(a, a.b.add(a.b.mul(p, a.b.i64(a.panel)), j)); });
  });
}

void finish_row(Kernel& a, Val r) {
  const Kernel::Row row = a.row_at(a.b.add(a.first_row, r));
  Val total = total_of(a, r);
  Val none = a.b.cmp(Pred::kEq, total, a.number(0));
  Val factor = a.b.select(none, a.number(0), a.b.binary(Op::kDiv, a.number(1), total));
  const ir::TensorType& type = a.node.types[0];
  Index index = a.batch_index;
  index.push_back(row.head);
  if (a.parts.part > 0) index.push_back(a.piece);
  index.push_back(row.query);
  const auto store = [&](Val column, Val value) {
    Index at = index;
    at.push_back(column);
    a.b.store(a.frame.root_buffer(0), ops::flatten_index(a.b, type.shape, at), value);
  };
  if (a.parts.part > 0) {
    Val all = a.muladd(a.b.load(a.top, r), a.number(kLn2), a.b.unary(Op::kLog, total));
    store(a.b.dim(a.columns), a.b.select(none, a.lowest(), all));
  }
  Val line = a.b.mul(r, a.b.dim(a.sums_stride));
  a.b.loop(a.b.i64(0), a.b.dim(a.columns), {.vector = true}, [&](Val e) {
    Val value = a.b.mul(a.b.load(a.sums, a.b.add(line, e)), factor);
    if (a.bounded || a.parts.mask || a.in_words()) value = seen_alone(a, row, r, e, factor, value);
    store(e, ops::cast(a.b, value, a.parts.compute, type.dtype));
  });
}

}  // namespace tenon::passes
