#include "tenon/passes/lower_matmul.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/ops/packed_matmul.h"
#include "tenon/passes/blocking.h"
#include "tenon/passes/lower_panel_matmul.h"
#include "tenon/passes/matmul_index.h"

namespace tenon::passes {
namespace {

using kir::Val;
using ops::Index;
using ops::kPanelColumns;

// Blocks of the common dimension (half for f64): panels are called in ahead and tiles stand in the
// second cache, so passes over partial sums cost more than what a long block displaces.
constexpr int64_t kDepthBlock = 2048;
constexpr int64_t kDepthUnblocked = 3072;  // not worth a second block
constexpr int64_t kDepthUnknown = 1024;    // of a symbolic common dimension
constexpr int64_t kDepthFewRows = 16384;   // one tile: panels are read once anyway
constexpr int64_t kDepthPadding = 16;      // keeps rows of a tile in different cache sets
// Rows of a panel called into the first cache before their turn: the second cache answers within
// one tile's 16, memory does not.
constexpr int64_t kAhead = 16;
constexpr int64_t kAheadFewRows = 64;
constexpr int64_t kTilesPerBlock = 28;
// Rows of a tile whose sums fit the registers: 32 of them, or 16.
constexpr int64_t kWideRows = 14;
constexpr int64_t kNarrowRows = 6;
constexpr int64_t kNarrowColumns = 16;  // no more columns than these: half a panel is enough
constexpr int64_t kCacheShare = 3;      // tiles of a block fill this part of the second cache
constexpr int64_t kOthersEnough = 16;   // tasks of other panels and batches: rows need not be split

// Rows per tile for a known number of rows: the largest that costs least, counting the loads of a
// panel as one row of every tile and a short tile as five rows (below that, loads bound it).
int64_t choose_rows(int64_t rows, int64_t most) {
  if (rows <= most) return std::max<int64_t>(rows, 1);
  int64_t best = most;
  int64_t best_cost = -1;
  for (int64_t r = most; r > most / 2; --r) {
    int64_t rest = rows % r;
    int64_t cost = rows / r * (r + 1) + (rest == 0 ? 0 : std::max<int64_t>(rest, 5) + 1);
    if (best_cost < 0 || cost < best_cost) {
      best = r;
      best_cost = cost;
    }
  }
  return best;
}

// Panels worked on together, so that few rows still keep the arithmetic units busy: a third panel
// slows reading from the third cache. Of memory that is read in place as many adjacent columns as
// can be.
int64_t panels_at_once(int64_t rows, bool wide, bool in_place) {
  int64_t vectors = wide ? 28 : 12;  // accumulators that fit, two a panel and row
  return std::clamp<int64_t>(vectors / (2 * rows), 1, in_place ? 12 : 2);
}

class Gemm {
 public:
  explicit Gemm(const MatmulEmission& emission)
      : e_(emission),
        b_(emission.context.builder()),
        a_(emission.matmul.operands[0]),
        p_(emission.matmul.operands[1]),
        at_(b_, emission.matmul),
        acc_(kir::type_of(ops::accumulation_type(a_.dtype(), p_.dtype()))) {
    measure();
  }

  void emit() {
    kir::Kernel& kernel = b_.kernel();
    scratch_ = b_.add_scratch("tiles", acc_dtype(), block_rows_ * Dim(stride_));
    if (depth_blocks_ != Dim(1) && !e_.partial_buffer) {
      partial_ =
          b_.add_scratch("partial", acc_dtype(), block_rows_ * block_panels_ * Dim(kPanelColumns));
    }
    Dim column_blocks = ceil_div(panels_, block_panels_);
    Dim row_blocks = ceil_div(rows_, block_rows_);
    kernel.grid = Dim(parts_) * product(at_.batch()) * row_blocks * column_blocks;
    Dim columns = block_panels_ * Dim(kPanelColumns);
    auto bytes = static_cast<int64_t>(size_of(p_.dtype()));
    kernel.bytes_per_index = columns * part_depth_ * Dim(bytes);
    kernel.ops_per_index = columns * part_depth_ * dim_min(rows_, block_rows_) * Dim(2);
    b_.loop(b_.begin(), b_.end(), {.parallel = true}, [&](Val g) {
      Val column_block = b_.index_rem(g, column_blocks);
      Val rest = b_.index_div(g, column_blocks);
      Val row_block = b_.index_rem(rest, row_blocks);
      const Val outer = b_.index_div(rest, row_blocks);
      part_from_ = b_.i64(0);
      if (parts_ == 1) {
        at_.set_batch(outer);
      } else {
        const Dim batches = dim_max(product(at_.batch()), Dim(1));
        at_.set_batch(b_.index_rem(outer, batches));
        const Val part = b_.index_div(outer, batches);
        at_.set_part(part);
        part_from_ = b_.mul(part, b_.dim(part_depth_));
      }
      first_panel_ = b_.mul(column_block, b_.dim(block_panels_));
      last_panel_ =
          b_.binary(kir::Op::kSMin, b_.add(first_panel_, b_.dim(block_panels_)), b_.dim(panels_));
      first_row_ = b_.mul(row_block, b_.dim(block_rows_));
      last_row_ = b_.binary(kir::Op::kSMin, b_.add(first_row_, b_.dim(block_rows_)), b_.dim(rows_));
      if (depth_blocks_ == Dim(1)) {
        emit_depth_block(b_.i64(0));
      } else {
        b_.loop(b_.i64(0), b_.dim(depth_blocks_), {}, [&](Val block) { emit_depth_block(block); });
      }
    });
  }

 private:
  Val least(Val a, Val b) { return b_.binary(kir::Op::kSMin, a, b); }
  DType acc_dtype() const { return acc_ == kir::Type::kF64 ? DType::kF64 : DType::kF32; }

  // Sizes and blocking.
  void measure() {
    const Shape& shape = e_.matmul.types[0].shape;
    size_t batch_rank = p_.shape().size() - 3;
    rows_ = at_.rows();
    depth_ = a_.shape().back();
    columns_ = shape.back();
    panels_ = p_.shape()[batch_rank];
    is_narrow_ = columns_.is_static() && columns_.value() <= kNarrowColumns;

    const bool wide_blocks = e_.wide || e_.beside_wide;
    most_rows_ = wide_blocks ? kWideRows : kNarrowRows;
    std::optional<int64_t> rows = rows_.static_value();
    if (rows) {
      most_rows_ = *rows > most_rows_ && *rows <= 2 * most_rows_ + 2
                       ? std::min(most_rows_, (*rows + 1) / 2)
                       : choose_rows(*rows, most_rows_);
    }
    bool few = rows && *rows <= most_rows_;
    tile_rows_ = e_.wide ? most_rows_ : std::min(most_rows_, kNarrowRows);
    together_ = few ? panels_at_once(most_rows_, wide_blocks, !e_.packed_buffer) : 1;
    ahead_ = few ? kAheadFewRows : kAhead;
    depth_block_ = kDepthUnknown;
    parts_ = e_.matmul.attrs.i("parts");
    part_depth_ = ops::depth_of_part(depth_, parts_);
    if (std::optional<int64_t> depth = part_depth_.static_value()) {
      const int64_t part = acc_ == kir::Type::kF64 ? 2 : 1;
      int64_t whole = few ? kDepthFewRows : kDepthUnblocked / part;
      int64_t limit = *depth <= whole ? whole : few ? kDepthFewRows : kDepthBlock / part;
      int64_t blocks = std::max<int64_t>(ceil_div(*depth, limit), 1);
      depth_block_ = ceil_div(*depth, blocks);
      if (blocks > 1) depth_block_ = ceil_div(depth_block_, int64_t{16}) * 16;
      depth_block_ = std::max<int64_t>(depth_block_, 1);
    }
    depth_blocks_ = dim_max(ceil_div(part_depth_, Dim(depth_block_)), Dim(1));
    stride_ = ceil_div(depth_block_, int64_t{16}) * 16 + kDepthPadding;
    measure_blocks();
  }

  // Tiles of a block stand in the second cache; there are enough blocks for every thread.
  void measure_blocks() {
    const Dim threads = Dim(kir::kDimThreads, {.min = 1});
    const auto bytes = static_cast<int64_t>(size_of(acc_dtype()));
    const Dim fit =
        floor_div(Dim(kir::kDimL2, {.min = 1}), Dim(kCacheShare * most_rows_ * stride_ * bytes));
    const Dim most = dim_max(dim_min(fit, Dim(kTilesPerBlock)), Dim(1));
    const Dim others = panels_ * product(at_.batch()) * Dim(parts_);
    block_rows_ = most * Dim(most_rows_);
    if (std::optional<int64_t> rows = rows_.static_value()) {
      const int64_t tiles = std::max<int64_t>(ceil_div(*rows, most_rows_), 1);
      Dim blocks = ceil_div(Dim(tiles), most);
      // Few panels do not make tasks enough.
      if (others.is_static() && others.value() > 0 && others.value() < kOthersEnough) {
        blocks = dim_max(blocks, dim_min(ceil_div(threads * Dim(2), others), Dim(tiles)));
      }
      block_rows_ = ceil_div(Dim(tiles), blocks) * Dim(most_rows_);
    }
    const Dim tasks = others * ceil_div(rows_, block_rows_);
    const Dim wanted = threads * Dim(tasks_per_thread(rows_.static_value()));
    block_panels_ =
        ceil_div(dim_max(ceil_div(tasks, wanted), Dim(1)), Dim(together_)) * Dim(together_);
    block_panels_ = dim_min(block_panels_, dim_max(panels_, Dim(1)));
  }

  void emit_depth_block(Val block) {
    const Val into = b_.mul(block, b_.i64(depth_block_));
    depth_from_ = b_.add(part_from_, into);
    const bool whole_blocks = depth_.is_static() && depth_.value() > 0 &&
                              part_depth_.value() * parts_ == depth_.value() &&
                              part_depth_.value() % depth_block_ == 0;
    if (whole_blocks) {
      depth_count_ = b_.i64(depth_block_);
    } else {
      // The last part may be short, those that follow it empty.
      const Val whole = least(b_.i64(depth_block_), b_.sub(b_.dim(part_depth_), into));
      const Val rest = b_.sub(b_.dim(depth_), depth_from_);
      depth_count_ = parts_ == 1 ? whole : b_.binary(kir::Op::kSMax, least(whole, rest), b_.i64(0));
    }
    first_block_ = b_.cmp(kir::Pred::kEq, block, b_.i64(0));
    last_block_ = b_.cmp(kir::Pred::kEq, block, b_.dim(depth_blocks_ - Dim(1)));

    for_each_tile([&](Val row, Val place, int64_t rows) { copy_tile(row, place, rows); });
    Val count = b_.sub(last_panel_, first_panel_);
    Val from = first_panel_;
    const int64_t together = panels_at_once(tile_rows_, e_.wide, !e_.packed_buffer);
    for (int64_t group = std::min(together, together_); group >= 1; group = group > 1 ? 1 : 0) {
      Val groups = b_.binary(kir::Op::kSDiv, count, b_.i64(group));
      Val start = from;
      b_.loop(b_.i64(0), groups, {}, [&](Val i) {
        const Val panel = b_.add(start, b_.mul(i, b_.i64(group)));
        for_each_tile(
            [&](Val row, Val place, int64_t tile) { emit_panels(row, place, tile, panel, group); });
      });
      Val done = b_.mul(groups, b_.i64(group));
      from = b_.add(from, done);
      count = b_.sub(count, done);
    }
  }

  // Calls visit(row, place, rows) for the tiles of the block: rows from `row`, which stand in
  // scratch memory from row `place`.
  void for_each_tile(const std::function<void(Val, Val, int64_t)>& visit) {
    const std::optional<int64_t> rows = rows_.static_value();
    if (rows && *rows <= tile_rows_) {
      if (*rows > 0) visit(first_row_, b_.i64(0), *rows);
      return;
    }
    const Val count = b_.sub(last_row_, first_row_);
    const Val full = b_.binary(kir::Op::kSDiv, count, b_.i64(tile_rows_));
    b_.loop(b_.i64(0), full, {}, [&](Val t) {
      const Val place = b_.mul(t, b_.i64(tile_rows_));
      visit(b_.add(first_row_, place), place, tile_rows_);
    });
    const Val place = b_.mul(full, b_.i64(tile_rows_));
    const Val row = b_.add(first_row_, place);
    // Whole tiles fill every block but the last, or there is one block.
    if (rows && (tile_rows_ == most_rows_ || *rows <= most_rows_)) {
      const int64_t rest = *rows % tile_rows_;
      if (rest == 0) return;
      b_.if_then(b_.cmp(kir::Pred::kSLt, row, last_row_), [&] { visit(row, place, rest); });
      return;
    }
    for_each_power(b_, row, b_.sub(last_row_, row), tile_rows_,
                   [&](Val first, int64_t tile) { visit(first, b_.sub(first, first_row_), tile); });
  }

  void copy_tile(Val row, Val place, int64_t rows) {
    b_.loop(b_.i64(0), b_.i64(rows), {}, [&](Val r) {
      Index index = at_.left(b_.add(row, r), nullptr);
      Val to = b_.mul(b_.add(place, r), b_.i64(stride_));
      b_.loop(b_.i64(0), depth_count_, {.vector = true}, [&](Val k) {
        index.back() = b_.add(depth_from_, k);
        Val value = ops::cast(b_, e_.context.element(a_, index), a_.dtype(), acc_dtype());
        b_.store(scratch_, b_.add(to, k), value);
      });
    });
  }

  // `rows` rows from `row` times the panels from `panel`.
  void emit_panels(Val row, Val place, int64_t rows, Val panel, int64_t group) {
    const int64_t lanes = is_narrow_ ? kNarrowColumns : kPanelColumns;
    kir::LoopSpec spec{.vector = true, .interleave = is_narrow_ ? 1 : 2, .multiple = lanes};
    b_.loop(b_.i64(0), b_.i64(lanes), spec, [&](Val j) {
      std::vector<Val> column(static_cast<size_t>(group));
      std::vector<Val> inside(static_cast<size_t>(group), nullptr);
      std::vector<kir::CarriedSpec> init;
      for (int64_t q = 0; q < group; ++q) {
        auto at = static_cast<size_t>(q);
        Val first = b_.mul(b_.add(panel, b_.i64(q)), b_.i64(kPanelColumns));
        column[at] = b_.add(first, j);
        if (!columns_.is_static() || columns_.value() % kPanelColumns != 0) {
          inside[at] = b_.cmp(kir::Pred::kSLt, column[at], b_.dim(columns_));
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t q = 0; q < group; ++q) {
          init.push_back({initial(b_.add(row, b_.i64(r)), b_.add(panel, b_.i64(q)), j,
                                  column[static_cast<size_t>(q)], inside[static_cast<size_t>(q)])});
        }
      }
      if (depth_blocks_ != Dim(1)) prefetch_partials(row, rows, panel, group, j);
      std::vector<Val> sums = multiply(place, rows, panel, group, j, init);
      auto each = [&](auto&& visit) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t q = 0; q < group; ++q) {
            visit(b_.add(row, b_.i64(r)), q, sums[static_cast<size_t>(r * group + q)]);
          }
        }
      };
      auto finish = [&] {
        each([&](Val at_row, int64_t q, Val sum) {
          auto at = static_cast<size_t>(q);
          e_.finish(at_.result(at_row, column[at]),
                    ops::cast(b_, sum, acc_dtype(), e_.matmul.types[0].dtype), inside[at]);
        });
      };
      if (depth_blocks_ == Dim(1)) {
        finish();
        return;
      }
      b_.if_then(last_block_, finish);
      b_.if_then(b_.logical_not(last_block_), [&] {
        each([&](Val at_row, int64_t q, Val sum) {
          auto at = static_cast<size_t>(q);
          store_partial(at_row, b_.add(panel, b_.i64(q)), j, column[at], inside[at], sum);
        });
      });
    });
  }

  // The inner kernel: rows × group panels of accumulators over this block of the common dimension.
  std::vector<Val> multiply(Val place, int64_t rows, Val panel, int64_t group, Val j,
                            std::span<const kir::CarriedSpec> init) {
    const Val left_from = b_.mul(place, b_.i64(stride_));
    return b_.loop(
        b_.i64(0), depth_count_, {}, init,
        [&](Val k, std::span<const Val> carried) -> std::vector<Val> {
          std::vector<Val> right;
          for (int64_t q = 0; q < group; ++q) {
            Index index = at_.right(b_.add(panel, b_.i64(q)), b_.add(depth_from_, k), j);
            right.push_back(ops::cast(b_, e_.context.element(p_, index), p_.dtype(), acc_dtype()));
            prefetch_right(b_.add(panel, b_.i64(q)), k, j);
          }
          std::vector<Val> next;
          for (int64_t r = 0; r < rows; ++r) {
            Val left = b_.load(scratch_, b_.add(b_.add(left_from, b_.i64(r * stride_)), k));
            for (int64_t q = 0; q < group; ++q) {
              next.push_back(b_.ternary(kir::Op::kMulAdd, left, right[static_cast<size_t>(q)],
                                        carried[static_cast<size_t>(r * group + q)]));
            }
          }
          return next;
        });
  }

  // Calls in the panel's row some rows after `k` of this block.
  void prefetch_right(Val panel, Val k, Val j) {
    const Val far = b_.add(depth_from_, b_.add(k, b_.i64(ahead_)));
    Index ahead = at_.right(panel, far, j);
    if (e_.packed_buffer) {
      return b_.prefetch(*e_.packed_buffer, ops::flatten_index(b_, p_.shape(), ahead));
    }
    if (!e_.right_buffer) return;
    const Val column = b_.add(b_.mul(panel, b_.i64(kPanelColumns)), j);
    ahead.erase(ahead.end() - 3, ahead.end());
    ahead.insert(ahead.end(), {far, column});
    const Shape& shape = p_.node->operands[0].shape();
    b_.prefetch(*e_.right_buffer, ops::flatten_index(b_, shape, ahead));
  }

  // ── partial sums between blocks of the common dimension ──────────────────────────────────────

  uint32_t partial_at(Val row, Val panel, Val j, Val column, Val* index) {
    if (e_.partial_buffer) {
      *index = ops::flatten_index(b_, e_.matmul.types[0].shape, at_.result(row, column));
      return *e_.partial_buffer;
    }
    Val line = b_.mul(b_.sub(row, first_row_), b_.dim(block_panels_ * Dim(kPanelColumns)));
    Val place = b_.mul(b_.sub(panel, first_panel_), b_.i64(kPanelColumns));
    *index = b_.add(b_.add(line, place), j);
    return partial_;
  }

  Val initial(Val row, Val panel, Val j, Val column, Val inside) {
    Val zero = b_.constant_float(acc_, 0.0);
    if (depth_blocks_ == Dim(1)) return zero;
    Val index = nullptr;
    uint32_t buffer = partial_at(row, panel, j, column, &index);
    Val wanted = b_.logical_not(first_block_);
    if (inside != nullptr) wanted = b_.binary(kir::Op::kAnd, wanted, inside);
    return b_.load_if(buffer, index, wanted, zero);
  }

  // Calls in the partial sums of the panels after these.
  void prefetch_partials(Val row, int64_t rows, Val panel, int64_t group, Val j) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t q = group; q < 2 * group; ++q) {
        Val next = b_.add(panel, b_.i64(q));
        Val column = b_.add(b_.mul(next, b_.i64(kPanelColumns)), j);
        Val index = nullptr;
        uint32_t buffer = partial_at(b_.add(row, b_.i64(r)), next, j, column, &index);
        b_.prefetch(buffer, index);
      }
    }
  }

  void store_partial(Val row, Val panel, Val j, Val column, Val inside, Val sum) {
    Val index = nullptr;
    uint32_t buffer = partial_at(row, panel, j, column, &index);
    if (inside == nullptr || !e_.partial_buffer) {
      b_.store(buffer, index, sum);
    } else {
      b_.store_if(buffer, index, sum, inside);
    }
  }

  const MatmulEmission& e_;
  kir::Builder& b_;
  const ir::Value& a_;
  const ir::Value& p_;
  MatmulIndex at_;
  kir::Type acc_;

  Dim rows_, depth_, columns_, panels_;
  int64_t parts_ = 1;
  Dim part_depth_;
  bool is_narrow_ = false;  // one panel, of which the rest is empty
  // Rows that blocks are made of, rows of a tile, panels worked on together.
  int64_t most_rows_ = 0, tile_rows_ = 0, together_ = 1;
  int64_t depth_block_ = 0, stride_ = 0, ahead_ = 0;
  Dim depth_blocks_, block_rows_, block_panels_;
  uint32_t scratch_ = 0, partial_ = 0;

  // Values of the block being emitted.
  Val first_panel_ = nullptr, last_panel_ = nullptr, first_row_ = nullptr, last_row_ = nullptr;
  Val part_from_ = nullptr, depth_from_ = nullptr, depth_count_ = nullptr, first_block_ = nullptr,
      last_block_ = nullptr;
};

}  // namespace

void emit_matmul(const MatmulEmission& emission) {
  if (ops::is_in_words(emission.matmul.operands[1])) {
    emit_panel_matmul(emission);
  } else {
    Gemm(emission).emit();
  }
}

}  // namespace tenon::passes
