#include "tenon/passes/lower_attention.h"

#include "tenon/passes/attention_scores.h"
#include "tenon/passes/attention_values.h"
#include "tenon/passes/attention_weights.h"
#include "tenon/passes/attention_words.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Val;
using ops::Index;
using Kernel = AttentionKernel;

constexpr int64_t kLineBytes = 64;
constexpr int64_t kFewTiles = 4;  // among which a block of keys is not worth dividing

// The keys that count: the length, where one is given.
Val key_count(Kernel& a) {
  if (!a.parts.length) return a.b.dim(a.keys);
  const Shape& shape = a.parts.length->shape();
  Val given = a.frame.context().element(*a.parts.length,
                                        ops::broadcast_index(a.b, shape, a.batch, a.batch_index));
  return a.at_most(a.at_least(given, a.b.i64(0)), a.b.dim(a.keys));
}

// Queries times scale and log2 e, empty sums.
void start_rows(Kernel& a, Val count) {
  a.b.loop(a.b.i64(0), count, {}, [&](Val r) {
    const Kernel::Row row = a.row_at(a.clamped_row(r));
    Index index = a.matrix_index(a.parts.q, row.head);
    index.insert(index.end(), {row.query, nullptr});
    Val to = a.b.mul(r, a.b.dim(a.depth_stride));
    a.b.loop(a.b.i64(0), a.b.dim(a.depth), {.vector = true}, [&](Val d) {
      index.back() = d;
      Val x = ops::cast(a.b, a.frame.context().element(a.parts.q, index), a.parts.q.dtype(),
                        a.parts.compute);
      a.b.store(a.query, a.b.add(to, d), a.b.mul(x, a.number(a.parts.scale * kLog2E)));
    });
    const auto clear = [&](uint32_t buffer, const Dim& stride) {
      Val line = a.b.mul(r, a.b.dim(stride));
      a.b.loop(a.b.i64(0), a.b.dim(stride), {.vector = true},
               [&](Val e) { a.b.store(buffer, a.b.add(line, e), a.number(0)); });
    };
    clear(a.sums, a.sums_stride);
    clear(a.totals, Dim(Kernel::kPanel));
    a.b.store(a.top, r, a.lowest());
  });
}

// Calls `rows` rows of a matrix into the caches, from row `first` of its head on: rows past the
// last one are those of the next head.
void call_ahead(Kernel& a, const ir::Value& value, Val head, Val first, Val rows) {
  const std::optional<uint32_t> buffer = a.frame.context().buffer_of(value);
  if (!buffer) return;
  const auto bytes = static_cast<int64_t>(size_of(value.dtype()));
  Index index = a.matrix_index(value, head);
  index.insert(index.end(), {nullptr, nullptr});
  a.b.loop(a.b.i64(0), rows, {}, [&](Val r) {
    index[index.size() - 2] = a.b.add(first, r);
    a.b.loop(a.b.i64(0), a.b.dim(value.shape().back()), {.step = kLineBytes / bytes}, [&](Val e) {
      index.back() = e;
      a.b.prefetch(*buffer, ops::flatten_index(a.b, value.shape(), index));
    });
  });
}

// While a tile is multiplied, its share of the next block of keys and values is called, and in the
// last block the queries of the next block of rows.
void call_next(Kernel& a, Val t, Val tiles, Val is_last) {
  Val share = a.b.binary(Op::kSDiv, a.b.i64(a.key_block), tiles);
  share = a.b.add(share, a.b.i64(1));
  Val first = a.b.add(a.first_key, a.b.add(a.b.i64(a.key_block), a.b.mul(t, share)));
  Val rows = a.b.select(a.b.cmp(Pred::kSLt, tiles, a.b.i64(kFewTiles)), a.b.i64(0), share);
  for (const ir::Value* value : {&a.parts.k, &a.parts.v}) {
    call_ahead(a, *value, a.group, first, rows);
  }
  if (a.per_group > 1) return;
  a.b.if_then(is_last, [&] {
    Val next = a.b.add(a.b.add(a.first_row, a.row_count), a.b.mul(t, a.b.i64(a.tile)));
    call_ahead(a, a.parts.q, a.group, next, a.b.i64(a.tile));
  });
}

// A tile of rows against a block of keys, from the first panel that a row of the tile sees to the
// last.
void emit_tile(Kernel& a, Val tile_row) {
  a.tile_row = tile_row;
  a.rows_of_tile.clear();
  for (int64_t r = 0; r < a.tile; ++r) {
    a.rows_of_tile.push_back(a.row_at(a.clamped_row(a.b.add(tile_row, a.b.i64(r)))));
  }
  Val low = a.rows_of_tile[0].low;
  Val high = a.rows_of_tile[0].high;
  for (const Kernel::Row& row : a.rows_of_tile) {
    low = a.at_most(low, row.low);
    high = a.at_least(high, row.high);
  }
  a.met = a.meet(low, high);
  a.b.if_then(a.met.any, [&] {
    emit_scores(a);
    emit_weights(a);
    add_values(a);
  });
}

void emit_rows(Kernel& a) {
  a.length = key_count(a);
  Val tiles = a.ceil_of(a.row_count, a.tile);
  if (a.in_words()) {
    start_words(a, tiles);
  } else {
    start_rows(a, a.b.mul(tiles, a.b.i64(a.tile)));
  }
  Kernel::Row all{};
  if (a.per_group == 1) {
    Val last_row = a.b.sub(a.b.add(a.first_row, a.row_count), a.b.i64(1));
    a.set_reach(all, a.first_row, last_row);
  } else {
    a.set_reach(all, a.b.i64(0), a.b.sub(a.b.dim(a.queries), a.b.i64(1)));
  }
  Val block = a.b.i64(a.key_block);
  Val end = a.ceil_of(a.at_least(all.high, a.b.i64(0)), a.key_block);
  a.b.loop(a.b.binary(Op::kSDiv, all.low, block), end, {}, [&](Val i) {
    a.first_key = a.b.mul(i, block);
    if (a.in_words()) {
      pack_words(a);
    } else {
      if (a.packs_keys()) pack_keys(a);
      if (a.packs_values()) pack_values(a);
    }
    Val is_last = a.b.cmp(Pred::kEq, a.b.add(i, a.b.i64(1)), end);
    a.b.loop(a.b.i64(0), tiles, {}, [&](Val t) {
      if (!a.few) call_next(a, t, tiles, is_last);
      if (a.in_words()) return emit_word_tile(a, t);
      emit_tile(a, a.b.mul(t, a.b.i64(a.tile)));
    });
  });
  if (a.in_words()) finish_words(a, tiles);
  a.b.loop(a.b.i64(0), a.row_count, {}, [&](Val r) { finish_row(a, r); });
}

}  // namespace

void lower_attention(KernelFrame& frame, bool wide) {
  Kernel a(frame, wide);
  kir::Kernel& kernel = a.b.kernel();
  const Dim blocks = ceil_div(a.rows, a.block_rows);
  const Dim grid = product(a.batch) * a.groups * a.pieces * blocks;
  const Dim keys = a.parts.part > 0 ? Dim(a.parts.part) : a.keys;
  const auto bytes = static_cast<int64_t>(size_of(a.parts.k.dtype()));
  kernel.bytes_per_index = keys * (a.depth + a.columns) * Dim(bytes);
  kernel.ops_per_index =
      keys * dim_min(a.rows, a.block_rows) * (a.depth + a.columns + Dim(16)) * Dim(2);
  frame.grid_loop(grid, false, [&](Val g) {
    a.first_row = a.b.mul(a.b.index_rem(g, blocks), a.b.dim(a.block_rows));
    Val rest = a.b.index_div(g, blocks);
    if (a.parts.part > 0) {
      a.piece = a.b.index_rem(rest, a.pieces);
      rest = a.b.index_div(rest, a.pieces);
    }
    a.group = a.b.index_rem(rest, a.groups);
    a.batch_index = ops::unflatten_index(a.b, a.batch, a.b.index_div(rest, a.groups));
    a.row_count =
        a.b.binary(Op::kSMin, a.b.dim(a.block_rows), a.b.sub(a.b.dim(a.rows), a.first_row));
    emit_rows(a);
  });
}

}  // namespace tenon::passes
