#include "tenon/passes/lower_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "tenon/ops/attention.h"
#include "tenon/passes/access.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Pred;
using kir::Val;
using ops::Index;

constexpr int64_t kTileRows = 12;   // half of them where there are 16 vector registers
constexpr int64_t kPanel = 32;      // columns that a tile computes at once
constexpr int64_t kWidePanel = 64;  // the same for a tile of few rows
constexpr int64_t kKeyBlock = 256;  // keys of which a tile's scores are held
constexpr int64_t kPadding = 16;    // keeps rows of scratch in different cache sets
constexpr int64_t kFewRows = 6;     // rows that take keys as they stand
constexpr int64_t kTasksPerThread = 4;
constexpr int64_t kMostBlockRows = 2048;  // whose sums stay in the second cache

Dim round_up(const Dim& a, int64_t to) { return ceil_div(a, Dim(to)) * Dim(to); }

class Attention {
 public:
  Attention(KernelFrame& frame, bool wide)
      : frame_(frame),
        b_(frame.builder()),
        node_(*frame.body().anchor.node),
        parts_(node_),
        type_(kir::type_of(parts_.compute)) {
    const Shape& q = parts_.q.shape();
    const Shape& result = node_.types[0].shape;
    batch_ = Shape(result.begin(), result.end() - (parts_.part == 0 ? 3 : 4));
    groups_ = *(parts_.k.shape().end() - 3);
    const Dim& heads = *(q.end() - 3);
    per_group_ = groups_ == heads || !heads.is_static() ? 1 : heads.value() / groups_.value();
    queries_ = *(q.end() - 2);
    depth_ = q.back();
    keys_ = *(parts_.k.shape().end() - 2);
    columns_ = parts_.v.shape().back();
    rows_ = queries_ * Dim(per_group_);
    if (parts_.part > 0) pieces_ = *(result.end() - 3);
    choose_sizes(wide);
  }

  void emit() {
    add_scratch();
    kir::Kernel& kernel = b_.kernel();
    const Dim blocks = ceil_div(rows_, block_rows_);
    const Dim grid = product(batch_) * groups_ * pieces_ * blocks;
    const Dim keys = parts_.part > 0 ? Dim(parts_.part) : keys_;
    const auto bytes = static_cast<int64_t>(size_of(parts_.k.dtype()));
    kernel.bytes_per_index = keys * (depth_ + columns_) * Dim(bytes);
    kernel.ops_per_index =
        keys * dim_min(rows_, block_rows_) * (depth_ + columns_ + Dim(16)) * Dim(2);
    frame_.grid_loop(grid, false, [&](Val g) {
      first_row_ = b_.mul(b_.index_rem(g, blocks), b_.dim(block_rows_));
      Val rest = b_.index_div(g, blocks);
      if (parts_.part > 0) {
        piece_ = b_.index_rem(rest, pieces_);
        rest = b_.index_div(rest, pieces_);
      }
      group_ = b_.index_rem(rest, groups_);
      batch_index_ = ops::unflatten_index(b_, batch_, b_.index_div(rest, groups_));
      row_count_ = b_.binary(Op::kSMin, b_.dim(block_rows_), b_.sub(b_.dim(rows_), first_row_));
      emit_rows();
    });
  }

 private:
  // ── sizes ────────────────────────────────────────────────────────────────────────────────────

  // All that the grid and the scratch memory follow from is the same for both kinds of targets.
  void choose_sizes(bool wide) {
    int64_t tile = kTileRows;
    if (std::optional<int64_t> rows = rows_.static_value()) {
      const int64_t tiles = std::max<int64_t>((*rows + tile - 1) / tile, 1);
      tile = std::max<int64_t>((*rows + tiles - 1) / tiles, 1);
      few_ = *rows <= kFewRows;
    }
    if (!few_) tile += tile % 2;
    tile_ = wide || few_ ? tile : tile / 2;
    interleave_ = wide && few_ ? 4 : 2;
    transposed_ = is_transposed(parts_.k);
    const Dim tiles = dim_max(ceil_div(rows_, Dim(tile)), Dim(1));
    const Dim threads = Dim(kir::kDimThreads, {.min = 1});
    const Dim tasks = tiles * product(batch_) * groups_ * pieces_;
    Dim together = dim_max(ceil_div(tasks, threads * Dim(kTasksPerThread)), Dim(1));
    together = dim_min(together, dim_min(tiles, Dim(kMostBlockRows / tile)));
    block_rows_ = together * Dim(tile);
    depth_stride_ = round_up(depth_, 16) + Dim(kPadding);
    const bool whole = columns_.is_static() && columns_.value() % kWidePanel == 0;
    panel_ = few_ && whole ? kWidePanel : kPanel;
    sums_stride_ = round_up(columns_, panel_) + Dim(kPadding);
    bounded_ = parts_.causal || parts_.window > 0 || parts_.length.has_value() || parts_.part > 0;
  }

  void add_scratch() {
    const DType type = parts_.compute;
    query_ = b_.add_scratch("query", type, block_rows_ * depth_stride_);
    sums_ = b_.add_scratch("sums", type, block_rows_ * sums_stride_);
    top_ = b_.add_scratch("top", type, block_rows_);
    total_ = b_.add_scratch("total", type, block_rows_);
    scores_ = b_.add_scratch("scores", type, Dim(kTileRows * kScoreStride));
    base_ = b_.add_scratch("base", type, Dim(kTileRows));
    shrink_ = b_.add_scratch("shrink", type, Dim(kTileRows));
    weights_ = b_.add_scratch("weights", type, Dim(kTileRows));
    if (packs_keys()) packed_ = b_.add_scratch("keys", type, depth_ * Dim(kKeyBlock));
  }

  // Transposed keys of few rows are read straight: their block is used by one tile.
  bool packs_keys() const { return !few_; }

  Val number(double value) { return b_.constant_float(type_, value); }
  Val lowest() { return number(-std::numeric_limits<double>::infinity()); }
  Val at_least(Val a, Val least) { return b_.binary(Op::kSMax, a, least); }
  Val at_most(Val a, Val most) { return b_.binary(Op::kSMin, a, most); }

  // ── indices ──────────────────────────────────────────────────────────────────────────────────

  Index matrix_index(const ir::Value& value, Val head) {
    Index index = batch_index_;
    for (size_t i = 0; i < index.size(); ++i) {
      if (value.shape()[i] == Dim(1)) index[i] = b_.i64(0);
    }
    index.push_back(head);
    return index;
  }

  // Keys and values are read where `inside` holds, everywhere without one.
  Val shared_element(const ir::Value& value, Val key, Val at, Val inside) {
    Index index = matrix_index(value, group_);
    index.insert(index.end(), {key, at});
    Val element = inside == nullptr ? frame_.context().element(value, index)
                                    : frame_.context().element_if(value, index, inside);
    return ops::cast(b_, element, value.dtype(), parts_.compute);
  }

  // What a row is: a query of a head.
  struct Row {
    Val head;
    Val query;
    Val low = nullptr;  // keys low ≤ t < high are in its reach
    Val high = nullptr;
  };

  Row row_at(Val row) {
    Row result{group_, row};
    if (per_group_ > 1) {
      b_.set_bound(row, rows_);
      result.query = b_.index_rem(row, queries_);
      result.head = b_.add(b_.mul(group_, b_.i64(per_group_)), b_.index_div(row, queries_));
    }
    set_reach(result, result.query, result.query);
    return result;
  }

  // The keys that queries first … last reach together.
  void set_reach(Row& row, Val first, Val last) {
    row.low = b_.i64(0);
    row.high = length_;
    Val shift = b_.sub(length_, b_.dim(queries_));
    if (parts_.causal) row.high = at_most(length_, b_.add(b_.add(last, shift), b_.i64(1)));
    if (parts_.window > 0) narrow_reach(row, first, last, shift);
    if (parts_.part == 0) return;
    Val start = b_.mul(piece_, b_.i64(parts_.part));
    row.low = at_least(row.low, start);
    row.high = at_most(row.high, b_.add(start, b_.i64(parts_.part)));
  }

  void narrow_reach(Row& row, Val first, Val last, Val shift) {
    Val window = b_.i64(parts_.window);
    row.low = at_least(b_.i64(0), b_.add(b_.sub(b_.add(first, shift), window), b_.i64(1)));
    if (!parts_.causal) row.high = at_most(length_, b_.add(b_.add(last, shift), window));
  }

  // ── a block of rows ──────────────────────────────────────────────────────────────────────────

  void emit_rows() {
    length_ = b_.dim(keys_);
    if (parts_.length) {
      const Shape& shape = parts_.length->shape();
      Val given = frame_.context().element(*parts_.length,
                                           ops::broadcast_index(b_, shape, batch_, batch_index_));
      length_ = at_most(at_least(given, b_.i64(0)), b_.dim(keys_));
    }
    Val tiles = b_.binary(Op::kSDiv, b_.add(row_count_, b_.i64(tile_ - 1)), b_.i64(tile_));
    start_rows(b_.mul(tiles, b_.i64(tile_)));
    Val last_row = b_.sub(b_.add(first_row_, row_count_), b_.i64(1));
    Row all{};
    if (per_group_ == 1) {
      set_reach(all, first_row_, last_row);
    } else {
      set_reach(all, b_.i64(0), b_.sub(b_.dim(queries_), b_.i64(1)));
    }
    Val block = b_.i64(kKeyBlock);
    Val end =
        b_.binary(Op::kSDiv, b_.add(at_least(all.high, b_.i64(0)), b_.i64(kKeyBlock - 1)), block);
    b_.loop(b_.binary(Op::kSDiv, all.low, block), end, {}, [&](Val i) {
      first_key_ = b_.mul(i, block);
      if (packs_keys()) pack_keys();
      b_.loop(b_.i64(0), tiles, {}, [&](Val t) { emit_tile(b_.mul(t, b_.i64(tile_))); });
    });
    b_.loop(b_.i64(0), row_count_, {}, [&](Val r) { finish_row(r); });
  }

  // Rows that only fill the last tile repeat the last one.
  Val clamped_row(Val r) { return b_.add(first_row_, at_most(r, b_.sub(row_count_, b_.i64(1)))); }

  void start_rows(Val count) {
    b_.loop(b_.i64(0), count, {}, [&](Val r) {
      const Row row = row_at(clamped_row(r));
      Index index = matrix_index(parts_.q, row.head);
      index.insert(index.end(), {row.query, nullptr});
      Val to = b_.mul(r, b_.dim(depth_stride_));
      b_.loop(b_.i64(0), b_.dim(depth_), {.vector = true}, [&](Val d) {
        index.back() = d;
        Val x = ops::cast(b_, frame_.context().element(parts_.q, index), parts_.q.dtype(),
                          parts_.compute);
        b_.store(query_, b_.add(to, d), b_.mul(x, number(parts_.scale)));
      });
      Val sums = b_.mul(r, b_.dim(sums_stride_));
      b_.loop(b_.i64(0), b_.dim(sums_stride_), {.vector = true},
              [&](Val e) { b_.store(sums_, b_.add(sums, e), number(0)); });
      b_.store(top_, r, lowest());
      b_.store(total_, r, number(0));
    });
  }

  // Keys stand in panels [depth, kPanel].
  void pack_keys() {
    Val count = at_most(b_.i64(kKeyBlock), b_.sub(b_.dim(keys_), first_key_));
    Val panels = b_.binary(Op::kSDiv, b_.add(count, b_.i64(kPanel - 1)), b_.i64(kPanel));
    b_.loop(b_.i64(0), panels, {}, [&](Val p) {
      Val first = b_.mul(p, b_.i64(kPanel));
      Val columns = at_most(b_.i64(kPanel), b_.sub(count, first));
      const auto copy = [&](Val j, Val d) {
        Val x = shared_element(parts_.k, b_.add(first_key_, b_.add(first, j)), d, nullptr);
        b_.store(packed_, packed_at(p, d, j), x);
      };
      if (transposed_) {
        b_.loop(b_.i64(0), b_.dim(depth_), {}, [&](Val d) {
          b_.loop(b_.i64(0), columns, {.vector = true}, [&](Val j) { copy(j, d); });
        });
      } else {
        b_.loop(b_.i64(0), columns, {}, [&](Val j) {
          b_.loop(b_.i64(0), b_.dim(depth_), {.vector = true}, [&](Val d) { copy(j, d); });
        });
      }
    });
  }

  Val packed_at(Val panel, Val d, Val j) {
    Val row = b_.add(b_.mul(panel, b_.dim(depth_)), d);
    return b_.add(b_.mul(row, b_.i64(kPanel)), j);
  }

  // ── a tile of rows against a block of keys ───────────────────────────────────────────────────

  void emit_tile(Val tile_row) {
    tile_row_ = tile_row;
    rows_of_tile_.clear();
    for (int64_t r = 0; r < tile_; ++r) {
      rows_of_tile_.push_back(row_at(clamped_row(b_.add(tile_row, b_.i64(r)))));
    }
    Val low = rows_of_tile_[0].low;
    Val high = rows_of_tile_[0].high;
    for (const Row& row : rows_of_tile_) {
      low = at_most(low, row.low);
      high = at_least(high, row.high);
    }
    low = at_least(b_.sub(low, first_key_), b_.i64(0));
    from_ = b_.mul(b_.binary(Op::kSDiv, low, b_.i64(kPanel)), b_.i64(kPanel));
    count_ = at_most(b_.sub(high, first_key_), b_.i64(kKeyBlock));
    b_.if_then(b_.cmp(Pred::kSLt, from_, count_), [&] {
      Val panels = b_.binary(Op::kSDiv, b_.add(count_, b_.i64(kPanel - 1)), b_.i64(kPanel));
      panels_end_ = b_.mul(panels, b_.i64(kPanel));
      emit_scores(b_.binary(Op::kSDiv, from_, b_.i64(kPanel)), panels);
      weigh();
      add_values();
    });
  }

  // The inner kernel: accumulators of the tile's rows over lo ≤ k < hi.
  std::vector<Val> multiply(Val lo, Val hi, std::span<const kir::CarriedSpec> init,
                            const std::function<Val(int64_t, Val)>& left,
                            const std::function<Val(Val)>& right) {
    return b_.loop(lo, hi, {}, init, [&](Val k, std::span<const Val> sums) {
      Val y = right(k);
      std::vector<Val> next;
      for (int64_t r = 0; r < tile_; ++r) {
        next.push_back(b_.ternary(Op::kMulAdd, left(r, k), y, sums[static_cast<size_t>(r)]));
      }
      return next;
    });
  }

  void emit_scores(Val first_panel, Val end_panel) {
    if (!packs_keys() && !transposed_) multiply_by_keys();
    const kir::LoopSpec spec{.vector = true, .interleave = 2, .multiple = kPanel};
    b_.loop(first_panel, end_panel, {}, [&](Val p) {
      Val panel = b_.mul(p, b_.i64(kPanel));
      b_.loop(b_.i64(0), b_.i64(kPanel), spec, [&](Val j) {
        Val c = b_.add(panel, j);
        std::vector<Val> scores;
        if (!packs_keys() && !transposed_) {
          for (int64_t r = 0; r < tile_; ++r) scores.push_back(b_.load(scores_, score_at(r, c)));
        } else {
          scores = multiply_by_panel(p, j);
        }
        for (int64_t r = 0; r < tile_; ++r) {
          Val score = limited(r, panel, j, scores[static_cast<size_t>(r)]);
          b_.store(scores_, score_at(r, c), score);
        }
      });
    });
  }

  Val score_at(int64_t r, Val c) { return b_.add(b_.i64(r * kScoreStride), c); }

  Val query_at(Val r, Val d) {
    return b_.load(query_, b_.add(b_.mul(b_.add(tile_row_, r), b_.dim(depth_stride_)), d));
  }

  std::vector<Val> multiply_by_panel(Val p, Val j) {
    Val key = b_.add(first_key_, b_.add(b_.mul(p, b_.i64(kPanel)), j));
    Val inside = inside_keys(key);
    const std::vector<kir::CarriedSpec> init(static_cast<size_t>(tile_), {number(0)});
    return multiply(
        b_.i64(0), b_.dim(depth_), init, [&](int64_t r, Val d) { return query_at(b_.i64(r), d); },
        [&](Val d) {
          if (!packs_keys()) return shared_element(parts_.k, key, d, inside);
          return b_.load(packed_, packed_at(p, d, j));
        });
  }

  // Whether a key of the last panel exists; null where it always does.
  Val inside_keys(Val key) {
    if (keys_.is_static() && keys_.value() % kPanel == 0) return nullptr;
    return b_.cmp(Pred::kSLt, key, b_.dim(keys_));
  }

  // Scores of keys as they stand, one after another.
  void multiply_by_keys() {
    const std::vector<kir::CarriedSpec> init(static_cast<size_t>(tile_),
                                             {number(0), kir::Combine::kAdd});
    b_.loop(from_, count_, {}, [&](Val c) {
      const std::vector<Val> sums =
          b_.loop(b_.i64(0), b_.dim(depth_), {.vector = true}, init,
                  [&](Val d, std::span<const Val> before) {
                    Val x = shared_element(parts_.k, b_.add(first_key_, c), d, nullptr);
                    std::vector<Val> next;
                    for (int64_t r = 0; r < tile_; ++r) {
                      next.push_back(b_.ternary(Op::kMulAdd, query_at(b_.i64(r), d), x,
                                                before[static_cast<size_t>(r)]));
                    }
                    return next;
                  });
      for (int64_t r = 0; r < tile_; ++r) {
        b_.store(scores_, score_at(r, c), sums[static_cast<size_t>(r)]);
      }
    });
  }

  // The score with the mask, -inf where the row does not see the key.
  Val limited(int64_t r, Val panel, Val j, Val score) {
    const Row& row = rows_of_tile_[static_cast<size_t>(r)];
    Val c = b_.add(panel, j);
    if (parts_.mask) score = masked(row, b_.add(first_key_, c), score);
    // In i32: as wide as the scores, where a key's number would take twice the vectors.
    Val lane = b_.convert(Op::kIntTrunc, kir::Type::kI32, j);
    const auto bound = [&](Val key) {
      Val at = b_.sub(key, b_.add(first_key_, panel));
      return b_.convert(Op::kIntTrunc, kir::Type::kI32,
                        at_most(at_least(at, b_.i64(0)), b_.i64(kPanel)));
    };
    if (bounded_ || !keys_.is_static() || keys_.value() % kPanel != 0) {
      score = b_.select(b_.cmp(Pred::kSLt, lane, bound(row.high)), score, lowest());
    }
    if (parts_.window > 0 || parts_.part % kPanel != 0) {
      score = b_.select(b_.cmp(Pred::kSLt, lane, bound(row.low)), lowest(), score);
    }
    return score;
  }

  Val masked(const Row& row, Val key, Val score) {
    const ir::Value& mask = *parts_.mask;
    Shape shape = batch_;
    shape.insert(shape.end(), {groups_ * Dim(per_group_), queries_, keys_});
    Index index = batch_index_;
    index.insert(index.end(), {row.head, row.query, key});
    index = ops::broadcast_index(b_, mask.shape(), shape, index);
    Val inside = inside_keys(key);
    Val given = inside == nullptr ? frame_.context().element(mask, index)
                                  : frame_.context().element_if(mask, index, inside);
    if (mask.dtype() == DType::kBool) return b_.select(given, score, lowest());
    return b_.add(score, ops::cast(b_, given, mask.dtype(), parts_.compute));
  }

  // Turns scores into weights: all maxima, then row after row, then what the sums so far shrink by.
  void weigh() {
    const kir::LoopSpec spec{.vector = true, .multiple = kPanel};
    const std::vector<kir::CarriedSpec> init(static_cast<size_t>(tile_),
                                             {lowest(), kir::Combine::kFMax});
    // A NaN score is passed over here and makes the weights NaN below.
    const std::vector<Val> most =
        b_.loop(from_, panels_end_, spec, init, [&](Val c, std::span<const Val> before) {
          std::vector<Val> next;
          for (int64_t r = 0; r < tile_; ++r) {
            next.push_back(b_.binary(Op::kFMaxFast, b_.load(scores_, score_at(r, c)),
                                     before[static_cast<size_t>(r)]));
          }
          return next;
        });
    for (int64_t r = 0; r < tile_; ++r) {
      Val row = b_.add(tile_row_, b_.i64(r));
      Val old = b_.load(top_, row);
      Val top = b_.binary(Op::kFMaxFast, most[static_cast<size_t>(r)], old);
      Val base = b_.select(b_.cmp(Pred::kEq, top, lowest()), number(0), top);
      b_.store(top_, row, top);
      b_.store(base_, b_.i64(r), base);
      b_.store(shrink_, b_.i64(r), b_.sub(old, base));
    }
    b_.loop(b_.i64(0), b_.i64(tile_), {}, [&](Val r) { weigh_row(r); });
    b_.loop(b_.i64(0), b_.i64(tile_), {.vector = true}, [&](Val r) {
      Val row = b_.add(tile_row_, r);
      Val shrink = b_.unary(Op::kExp, b_.load(shrink_, r));
      b_.store(shrink_, r, shrink);
      Val total = b_.ternary(Op::kMulAdd, b_.load(total_, row), shrink, b_.load(weights_, r));
      b_.store(total_, row, total);
    });
  }

  void weigh_row(Val r) {
    Val line = b_.mul(r, b_.i64(kScoreStride));
    Val base = b_.load(base_, r);
    const kir::LoopSpec spec{.vector = true, .multiple = kPanel};
    const std::array<kir::CarriedSpec, 1> from_zero = {{{number(0), kir::Combine::kAdd}}};
    Val sum = b_.loop(from_, panels_end_, spec, from_zero,
                      [&](Val c, std::span<const Val> before) -> std::vector<Val> {
                        Val score = b_.load(scores_, b_.add(line, c));
                        Val weight = b_.unary(Op::kExp, b_.sub(score, base));
                        b_.store(scores_, b_.add(line, c), weight);
                        return {b_.add(before[0], weight)};
                      })[0];
    b_.store(weights_, r, sum);
  }

  void add_values() {
    const bool whole = columns_.is_static() && columns_.value() % panel_ == 0;
    const kir::LoopSpec spec{.vector = true, .interleave = interleave_, .multiple = panel_};
    b_.loop(b_.i64(0), b_.dim(ceil_div(columns_, Dim(panel_))), {}, [&](Val p) {
      b_.loop(b_.i64(0), b_.i64(panel_), spec, [&](Val j) {
        Val e = b_.add(b_.mul(p, b_.i64(panel_)), j);
        Val inside = whole ? nullptr : b_.cmp(Pred::kSLt, e, b_.dim(columns_));
        const auto place = [&](int64_t r) {
          Val line = b_.mul(b_.add(tile_row_, b_.i64(r)), b_.dim(sums_stride_));
          return b_.add(line, e);
        };
        std::vector<kir::CarriedSpec> init;
        for (int64_t r = 0; r < tile_; ++r) {
          init.push_back({b_.mul(b_.load(sums_, place(r)), b_.load(shrink_, b_.i64(r)))});
        }
        const std::vector<Val> sums = multiply(
            from_, count_, init, [&](int64_t r, Val c) { return b_.load(scores_, score_at(r, c)); },
            [&](Val c) { return shared_element(parts_.v, b_.add(first_key_, c), e, inside); });
        for (int64_t r = 0; r < tile_; ++r) {
          b_.store(sums_, place(r), sums[static_cast<size_t>(r)]);
        }
      });
    });
  }

  // ── results ──────────────────────────────────────────────────────────────────────────────────

  void finish_row(Val r) {
    const Row row = row_at(b_.add(first_row_, r));
    Val total = b_.load(total_, r);
    Val none = b_.cmp(Pred::kEq, total, number(0));
    Val factor = b_.select(none, number(0), b_.binary(Op::kDiv, number(1), total));
    Index index = batch_index_;
    index.push_back(row.head);
    if (parts_.part > 0) index.push_back(piece_);
    index.push_back(row.query);
    if (parts_.part > 0) {
      Val all = b_.add(b_.load(top_, r), b_.unary(Op::kLog, total));
      index.push_back(b_.dim(columns_));
      b_.store(frame_.root_buffer(0), ops::flatten_index(b_, node_.types[0].shape, index),
               b_.select(none, lowest(), all));
      index.pop_back();
    }
    index.push_back(nullptr);
    Val line = b_.mul(r, b_.dim(sums_stride_));
    b_.loop(b_.i64(0), b_.dim(columns_), {.vector = true}, [&](Val e) {
      index.back() = e;
      Val value = b_.mul(b_.load(sums_, b_.add(line, e)), factor);
      if (bounded_ || parts_.mask) value = seen_alone(row, r, e, factor, value);
      const DType dtype = node_.types[0].dtype;
      b_.store(frame_.root_buffer(0), ops::flatten_index(b_, node_.types[0].shape, index),
               ops::cast(b_, value, parts_.compute, dtype));
    });
  }

  // `value`, or where it is not finite the sum over the keys that the row sees.
  Val seen_alone(const Row& row, Val r, Val e, Val factor, Val value) {
    Val wrong = b_.cmp(Pred::kUno, b_.sub(value, value), number(0));
    Val base = b_.load(top_, r);
    const std::array<Val, 1> init = {value};
    return b_.rarely(wrong, init, [&](std::span<const Val> given) -> std::vector<Val> {
      const std::array<kir::CarriedSpec, 1> from_zero = {{{number(0)}}};
      Val sum = b_.loop(row.low, row.high, {}, from_zero,
                        [&](Val t, std::span<const Val> before) -> std::vector<Val> {
                          Val score = score_of(row, r, t);
                          Val weight = b_.unary(Op::kExp, b_.sub(score, base));
                          Val y = shared_element(parts_.v, t, e, nullptr);
                          Val more = b_.ternary(Op::kMulAdd, weight, y, before[0]);
                          Val unseen = b_.cmp(Pred::kEq, score, lowest());
                          return {b_.select(unseen, before[0], more)};
                        })[0];
      return {b_.select(wrong, b_.mul(sum, factor), given[0])};
    })[0];
  }

  Val score_of(const Row& row, Val r, Val t) {
    const std::array<kir::CarriedSpec, 1> from_zero = {{{number(0)}}};
    Val line = b_.mul(r, b_.dim(depth_stride_));
    Val score = b_.loop(b_.i64(0), b_.dim(depth_), {}, from_zero,
                        [&](Val d, std::span<const Val> before) -> std::vector<Val> {
                          Val x = b_.load(query_, b_.add(line, d));
                          Val y = shared_element(parts_.k, t, d, nullptr);
                          return {b_.ternary(Op::kMulAdd, x, y, before[0])};
                        })[0];
    return parts_.mask ? masked(row, t, score) : score;
  }

  static constexpr int64_t kScoreStride = kKeyBlock + kPadding;

  KernelFrame& frame_;
  kir::Builder& b_;
  const ir::Node& node_;
  ops::AttentionParts parts_;
  kir::Type type_;

  Shape batch_;
  Dim groups_, queries_, depth_, keys_, columns_, rows_;
  Dim pieces_ = 1;          // of the keys, with `part`
  int64_t per_group_ = 1;   // heads that share a key head
  int64_t tile_ = 1;        // rows of a tile
  int64_t panel_ = kPanel;  // columns of the result at once
  int interleave_ = 2;      // vectors of them at once
  Dim block_rows_, depth_stride_, sums_stride_;
  bool few_ = false;         // one tile takes the keys as they stand
  bool transposed_ = false;  // keys stand one beside another in memory
  bool bounded_ = false;     // rows reach different or run-time numbers of keys
  uint32_t query_ = 0, sums_ = 0, top_ = 0, total_ = 0, scores_ = 0, packed_ = 0;
  uint32_t base_ = 0, shrink_ = 0, weights_ = 0;  // of a tile

  // Values of the block and of the tile being emitted.
  Index batch_index_;
  Val group_ = nullptr, piece_ = nullptr, length_ = nullptr;
  Val first_row_ = nullptr, row_count_ = nullptr, first_key_ = nullptr, tile_row_ = nullptr;
  Val from_ = nullptr, count_ = nullptr, panels_end_ = nullptr;  // of the block's keys
  std::vector<Row> rows_of_tile_;
};

}  // namespace

void lower_attention(KernelFrame& frame, bool wide) { Attention(frame, wide).emit(); }

}  // namespace tenon::passes
