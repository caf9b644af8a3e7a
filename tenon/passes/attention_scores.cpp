#include "tenon/passes/attention_scores.h"

#include <array>
#include <limits>

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Val;
using ops::Index;
using Kernel = AttentionKernel;

constexpr int64_t kPanel = Kernel::kPanel;

Val packed_at(Kernel& a, Val panel, Val d, Val j) {
  Val row = a.b.add(a.b.mul(panel, a.b.dim(a.depth)), d);
  return a.b.add(a.b.mul(row, a.b.i64(kPanel)), j);
}

// Panel `p` of keys that stand one beside another.
void copy_panel(Kernel& a, Val p, Val first, Val count) {
  a.b.loop(a.b.i64(0), a.b.dim(a.depth), {}, [&](Val d) {
    a.b.loop(a.b.i64(0), count, {.vector = true}, [&](Val j) {
      Val x = a.shared_element(a.parts.k, a.b.add(first, j), d, nullptr);
      a.b.store(a.packed, packed_at(a, p, d, j), x);
    });
  });
}

// The same of keys that stand one after another.
void turn_panel(Kernel& a, Val p, Val first, Val count) {
  Val stride = a.b.dim(a.depth_stride);
  a.b.loop(a.b.i64(0), count, {}, [&](Val j) {
    a.b.loop(a.b.i64(0), a.b.dim(a.depth), {.vector = true}, [&](Val d) {
      Val x = a.shared_element(a.parts.k, a.b.add(first, j), d, nullptr);
      a.b.store(a.lines, a.b.add(a.b.mul(j, stride), d), x);
    });
  });
  a.b.transpose({a.packed, packed_at(a, p, a.b.i64(0), a.b.i64(0)), a.b.i64(kPanel)},
                {a.lines, a.b.i64(0), stride}, count, a.b.dim(a.depth));
}

Val query_at(Kernel& a, int64_t r, Val d) {
  Val row = a.b.add(a.tile_row, a.b.i64(r));
  return a.b.load(a.query, a.b.add(a.b.mul(row, a.b.dim(a.depth_stride)), d));
}

std::vector<Val> multiply_by_panel(Kernel& a, Val p, Val j) {
  Val key = a.b.add(a.first_key, a.b.add(a.b.mul(p, a.b.i64(kPanel)), j));
  Val inside = inside_keys(a, key);
  const std::vector<kir::CarriedSpec> init(static_cast<size_t>(a.tile), {a.number(0)});
  return multiply_rows(
      a, a.b.i64(0), a.b.dim(a.depth), init, [&](int64_t r, Val d) { return query_at(a, r, d); },
      [&](Val d) {
        if (!a.packs_keys()) return a.shared_element(a.parts.k, key, d, inside);
        return a.b.load(a.packed, packed_at(a, p, d, j));
      });
}

// Scores of keys as they stand, one after another.
void multiply_by_keys(Kernel& a) {
  const std::vector<kir::CarriedSpec> init(static_cast<size_t>(a.tile),
                                           {a.number(0), kir::Combine::kAdd});
  a.b.loop(a.met.from, a.met.count, {}, [&](Val c) {
    const std::vector<Val> sums =
        a.b.loop(a.b.i64(0), a.b.dim(a.depth), {.vector = true}, init,
                 [&](Val d, std::span<const Val> before) {
                   Val x = a.shared_element(a.parts.k, a.b.add(a.first_key, c), d, nullptr);
                   std::vector<Val> next;
                   for (int64_t r = 0; r < a.tile; ++r) {
                     next.push_back(a.muladd(query_at(a, r, d), x, before[static_cast<size_t>(r)]));
                   }
                   return next;
                 });
    for (int64_t r = 0; r < a.tile; ++r) {
      a.b.store(a.scores, score_at(a, r, c), sums[static_cast<size_t>(r)]);
    }
  });
}

// As `masked` takes it.
Val given_mask(Kernel& a, const Kernel::Row& row, Val key, Val inside) {
  Val given = mask_of(a, row, key, inside);
  return a.parts.mask->dtype() == DType::kBool ? given : finite_power(a, given);
}

// The score with the mask, -inf where the row does not see the key.
Val limited(Kernel& a, int64_t r, Val panel, Val j, Val score) {
  const Kernel::Row& row = a.rows_of_tile[static_cast<size_t>(r)];
  Val c = a.b.add(panel, j);
  if (a.parts.mask) {
    Val key = a.b.add(a.first_key, c);
    score = masked(a, given_mask(a, row, key, inside_keys(a, key)), score);
  }
  // In i32: as wide as the scores, where a key's number would take twice the vectors.
  Val lane = a.b.convert(Op::kIntTrunc, kir::Type::kI32, j);
  const auto bound = [&](Val key) {
    Val at = a.b.sub(key, a.b.add(a.first_key, panel));
    return a.b.convert(Op::kIntTrunc, kir::Type::kI32,
                       a.at_most(a.at_least(at, a.b.i64(0)), a.b.i64(kPanel)));
  };
  if (a.bounded || a.ends_in_panel()) {
    score = a.b.select(a.b.cmp(Pred::kSLt, lane, bound(row.high)), score, a.lowest());
  }
  if (a.parts.window > 0 || a.parts.part % kPanel != 0) {
    score = a.b.select(a.b.cmp(Pred::kSLt, lane, bound(row.low)), a.lowest(), score);
  }
  return score;
}

}  // namespace

std::vector<Val> multiply_rows(Kernel& a, Val lo, Val hi, std::span<const kir::CarriedSpec> init,
                               const std::function<Val(int64_t, Val)>& left,
                               const std::function<Val(Val)>& right) {
  return a.b.loop(lo, hi, {}, init, [&](Val k, std::span<const Val> sums) {
    Val y = right(k);
    std::vector<Val> next;
    for (int64_t r = 0; r < a.tile; ++r) {
      next.push_back(a.muladd(left(r, k), y, sums[static_cast<size_t>(r)]));
    }
    return next;
  });
}

void pack_keys(Kernel& a) {
  Val count = a.at_most(a.b.i64(Kernel::kKeyBlock), a.b.sub(a.b.dim(a.keys), a.first_key));
  a.b.loop(a.b.i64(0), a.ceil_of(count, kPanel), {}, [&](Val p) {
    Val before = a.b.mul(p, a.b.i64(kPanel));
    Val columns = a.at_most(a.b.i64(kPanel), a.b.sub(count, before));
    const auto pack = a.transposed ? copy_panel : turn_panel;
    pack(a, p, a.b.add(a.first_key, before), columns);
  });
}

void emit_scores(Kernel& a) {
  const bool stored = !a.packs_keys() && !a.transposed;
  if (stored) multiply_by_keys(a);
  const kir::LoopSpec spec{.vector = true, .interleave = 2, .multiple = kPanel};
  a.b.loop(a.met.first_panel, a.met.panels, {}, [&](Val p) {
    Val panel = a.b.mul(p, a.b.i64(kPanel));
    a.b.loop(a.b.i64(0), a.b.i64(kPanel), spec, [&](Val j) {
      Val c = a.b.add(panel, j);
      std::vector<Val> scores;
      if (stored) {
        for (int64_t r = 0; r < a.tile; ++r) {
          scores.push_back(a.b.load(a.scores, score_at(a, r, c)));
        }
      } else {
        scores = multiply_by_panel(a, p, j);
      }
      for (int64_t r = 0; r < a.tile; ++r) {
        Val score = limited(a, r, panel, j, scores[static_cast<size_t>(r)]);
        a.b.store(a.scores, score_at(a, r, c), score);
      }
    });
  });
}

Val inside_keys(Kernel& a, Val key) {
  return a.ends_in_panel() ? a.b.cmp(Pred::kSLt, key, a.b.dim(a.keys)) : nullptr;
}

Val mask_of(Kernel& a, const Kernel::Row& row, Val key, Val inside) {
  const ir::Value& mask = *a.parts.mask;
  Shape shape = a.batch;
  shape.insert(shape.end(), {a.groups * Dim(a.per_group), a.queries, a.keys});
  Index index = a.batch_index;
  index.insert(index.end(), {row.head, row.query, key});
  index = ops::broadcast_index(a.b, mask.shape(), shape, index);
  return inside == nullptr ? a.frame.context().element(mask, index)
                           : a.frame.context().element_if(mask, index, inside);
}

Val finite_power(Kernel& a, Val given) {
  const DType from = a.parts.mask->dtype();
  const DType to = a.parts.compute;
  if (from == DType::kF16) return ops::cast(a.b, given, from, to);
  const DType wide = from == DType::kF64 ? from : to;
  given = ops::cast(a.b, given, from, wide);
  const auto number = [&](double x) { return a.b.constant_float(kir::type_of(wide), x); };
  Val least = number(to == DType::kF64 ? -0x1p1022 : -0x1p126);
  Val small = a.b.cmp(Pred::kFLt, given, least);
  Val finite = a.b.cmp(Pred::kFGt, given, number(-std::numeric_limits<double>::infinity()));
  return ops::cast(a.b, a.b.select(a.b.binary(Op::kAnd, small, finite), least, given), wide, to);
}

Val masked(Kernel& a, Val given, Val score) {
  if (a.parts.mask->dtype() == DType::kBool) return a.b.select(given, score, a.lowest());
  return a.muladd(given, a.number(kLog2E), score);
}

Val score_of(Kernel& a, const Kernel::Row& row, Val t) {
  const std::array<kir::CarriedSpec, 1> from_zero = {{{a.number(0)}}};
  Val factor = a.number(a.parts.scale * kLog2E);
  Index index = a.matrix_index(a.parts.q, row.head);
  index.insert(index.end(), {row.query, nullptr});
  Val score = a.b.loop(a.b.i64(0), a.b.dim(a.depth), {}, from_zero,
                       [&](Val d, std::span<const Val> before) -> std::vector<Val> {
                         index.back() = d;
                         Val x = ops::cast(a.b, a.frame.context().element(a.parts.q, index),
                                           a.parts.q.dtype(), a.parts.compute);
                         Val y = a.shared_element(a.parts.k, t, d, nullptr);
                         return {a.muladd(a.b.mul(x, factor), y, before[0])};
                       })[0];
  return a.parts.mask ? masked(a, given_mask(a, row, t, nullptr), score) : score;
}

}  // namespace tenon::passes
