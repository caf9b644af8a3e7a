#include "tenon/passes/lower_panel_matmul.h"

#include <algorithm>
#include <functional>

#include "tenon/base/error.h"
#include "tenon/ops/packed_matmul.h"
#include "tenon/passes/blocking.h"
#include "tenon/passes/matmul_index.h"

namespace tenon::passes {
namespace {

using kir::PanelDot;
using kir::Val;
using ops::Index;
using ops::kPanelColumns;

constexpr int64_t kTileRows = kir::kPanelDotRows;
constexpr int64_t kRowUnit = 16;  // a tile has room for a multiple of these
constexpr int64_t kUnit = kir::kPanelDotWords;
// Words of the common dimension in a block, and the most that are not worth a second one: partial
// sums cost more than rows that come from the second cache.
constexpr int64_t kDepthBlock = 1024;
constexpr int64_t kDepthUnblocked = 2048;
constexpr int64_t kDepthFewRows = 4096;  // one tile: panels are read once anyway
// Words of a panel that stay in the first cache while the tiles of a block pass by.
constexpr int64_t kDepthCached = 256;
// Tiles that call in the panel's next words, a quarter each.
constexpr int64_t kCallingTiles = 4;
constexpr int64_t kMostBlockTiles = 8;
constexpr int64_t kWordBytes = 4;
// Lines of a row that are copied before the next row's.
constexpr int64_t kLinesTogether = 8;

int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

PanelDot::Kind kind_of(DType left) {
  switch (left) {
    case DType::kBF16: return PanelDot::Kind::kBF16;
    case DType::kU8: return PanelDot::Kind::kU8;
    default: throw InternalError("matmul_packed: no product of words with this dtype");
  }
}

class PanelGemm {
 public:
  explicit PanelGemm(const MatmulEmission& emission)
      : e_(emission),
        b_(emission.context.builder()),
        a_(emission.matmul.operands[0]),
        p_(emission.matmul.operands[1]),
        at_(b_, emission.matmul),
        acc_(is_float(a_.dtype()) ? DType::kF32 : DType::kI32) {
    measure();
  }

  void emit() {
    const Dim column_blocks = ceil_div(panels_, block_panels_);
    const Dim row_blocks = ceil_div(at_.rows(), block_rows_);
    set_costs(row_blocks, column_blocks);
    tile_ = b_.add_scratch("rows", a_.dtype(), slots_ * Dim(stride_ * each_));
    const Dim one = is_cached_ ? slots_ : Dim(round_up(tile_rows_, kRowUnit));
    // While a panel is multiplied, the results of the one before are written.
    const Dim sums = is_blocked() ? slots_ * block_panels_ : is_cached_ ? one * Dim(2) : one;
    sums_ = b_.add_scratch("sums", acc_, sums * Dim(kPanelColumns));
    if (!e_.packed_buffer) {
      const int64_t words = is_cached_ ? cached_words_ : depth_block_;
      panel_ = b_.add_scratch("panel", p_.dtype(), Dim(words * kPanelColumns));
    }
    b_.loop(b_.begin(), b_.end(), {.parallel = true}, [&](Val g) {
      const Val column_block = b_.index_rem(g, column_blocks);
      const Val rest = b_.index_div(g, column_blocks);
      const Val part = at_.set_task(b_.index_div(rest, row_blocks));
      part_from_ = b_.mul(part, b_.dim(part_words_));
      first_panel_ = b_.mul(column_block, b_.dim(block_panels_));
      last_panel_ = least(b_.add(first_panel_, b_.dim(block_panels_)), b_.dim(panels_));
      first_row_ = b_.mul(b_.index_rem(rest, row_blocks), b_.dim(block_rows_));
      last_row_ = least(b_.add(first_row_, b_.dim(block_rows_)), b_.dim(at_.rows()));
      if (!is_blocked()) return emit_depth_block(b_.i64(0));
      b_.loop(b_.i64(0), b_.dim(depth_blocks_), {}, [&](Val block) { emit_depth_block(block); });
    });
  }

 private:
  Val least(Val a, Val b) { return b_.binary(kir::Op::kSMin, a, b); }
  bool is_blocked() const { return depth_blocks_ != Dim(1); }

  void measure() {
    each_ = ops::elements_in_word(a_.dtype());
    depth_ = a_.shape().back();
    const size_t batch_rank = p_.shape().size() - 3;
    panels_ = p_.shape()[batch_rank];
    words_ = p_.shape()[batch_rank + 1];
    columns_ = e_.matmul.types[0].shape.back();
    const std::optional<int64_t> rows = at_.rows().static_value();
    tile_rows_ = rows ? std::clamp<int64_t>(*rows, 1, kTileRows) : kTileRows;
    const bool few = rows && *rows <= kRowUnit;
    depth_block_ = kDepthBlock;
    part_words_ =
        !at_.in_parts() ? words_ : floor_div(ops::depth_of_part(depth_, at_.parts()), Dim(each_));
    if (std::optional<int64_t> words = part_words_.static_value()) {
      const int64_t whole = few ? kDepthFewRows : kDepthUnblocked;
      const int64_t limit = *words <= whole ? whole : few ? kDepthFewRows : kDepthBlock;
      const int64_t blocks = std::max<int64_t>(ceil_div(*words, limit), 1);
      depth_block_ = std::max(round_up(ceil_div(*words, blocks), kUnit), kUnit);
    }
    depth_blocks_ = dim_max(ceil_div(part_words_, Dim(depth_block_)), Dim(1));
    stride_ = depth_block_ + kUnit;
    // Words that are packed here stay in the first cache until they are multiplied.
    is_cached_ = (!rows || *rows > kTileRows || !e_.packed_buffer) && depth_block_ > kDepthCached;
    cached_words_ = round_up(ceil_div(depth_block_, ceil_div(depth_block_, kDepthCached)), kUnit);

    // A block of rows fills a quarter of the second cache: panels stream through the rest.
    const Dim cache = Dim(kir::kDimL2, {.min = 1});
    const Dim fit = floor_div(cache, Dim(4 * kWordBytes * kTileRows * depth_block_));
    const Dim most = dim_max(dim_min(fit, Dim(kMostBlockTiles)), Dim(1));
    const Dim tiles = dim_max(ceil_div(at_.rows(), Dim(tile_rows_)), Dim(1));
    block_rows_ = ceil_div(tiles, ceil_div(tiles, most)) * Dim(tile_rows_);
    // Rows that are no whole tile get tiles of their own, each in a row unit.
    slots_ = block_rows_ + Dim(6 * kRowUnit);
    const Dim threads = Dim(kir::kDimThreads, {.min = 1});
    const Dim tasks = panels_ * ceil_div(at_.rows(), block_rows_) * at_.tasks();
    block_panels_ = dim_max(ceil_div(tasks, threads * Dim(tasks_per_thread(rows))), Dim(1));
    block_panels_ = dim_min(block_panels_, dim_max(panels_, Dim(1)));
  }

  void set_costs(const Dim& row_blocks, const Dim& column_blocks) {
    kir::Kernel& kernel = b_.kernel();
    const Dim columns = block_panels_ * Dim(kPanelColumns);
    kernel.grid = at_.tasks() * row_blocks * column_blocks;
    kernel.bytes_per_index = columns * part_words_ * Dim(4);
    kernel.ops_per_index = columns * part_words_ * dim_min(at_.rows(), block_rows_) * Dim(2);
  }

  void emit_depth_block(Val block) {
    const Val into = b_.mul(block, b_.i64(depth_block_));
    from_ = b_.add(part_from_, into);
    count_ = least(b_.i64(depth_block_), b_.sub(b_.dim(part_words_), into));
    if (at_.in_parts()) {
      // The last part may be short, those that follow it empty.
      const Val rest = b_.sub(b_.dim(words_), from_);
      count_ = b_.binary(kir::Op::kSMax, least(count_, rest), b_.i64(0));
    }
    later_ = b_.cmp(kir::Pred::kNe, block, b_.i64(0));
    last_ = b_.cmp(kir::Pred::kEq, block, b_.dim(depth_blocks_ - Dim(1)));
    for_each_tile([&](Val row, Val place, int64_t rows) { copy_tile(row, place, rows); });
    if (is_cached_) return emit_cached_panels();
    b_.loop(first_panel_, last_panel_, {}, [&](Val panel) {
      pack_words(panel, b_.i64(0), count_);
      for_each_tile([&](Val row, Val place, int64_t rows) {
        emit_tile(place, rows, panel, b_.i64(0), count_);
        const auto all = [&] { finish(row, place, panel, b_.i64(0), b_.i64(rows)); };
        is_blocked() ? b_.if_then(last_, all) : all();
      });
    });
  }

  // Each panel in parts that stay in the first cache. A share of the rows of a tile's results is
  // written after each part of the next panel: the stores go on while tiles are multiplied.
  void emit_cached_panels() {
    // Without words there is one round all the same: it sets the sums to 0.
    const Val end = b_.binary(kir::Op::kSMax, count_, b_.i64(1));
    const int64_t rounds = ceil_div(depth_block_, cached_words_);
    const Val after = b_.select(last_, b_.i64(1), b_.i64(0));
    b_.loop(first_panel_, b_.add(last_panel_, after), {}, [&](Val panel) {
      const Val before = b_.sub(panel, b_.i64(1));
      const Val there = b_.cmp(kir::Pred::kSLt, panel, last_panel_);
      const Val finishes =
          b_.binary(kir::Op::kAnd, last_, b_.cmp(kir::Pred::kSGe, before, first_panel_));
      b_.loop(b_.i64(0), end, {.step = cached_words_}, [&](Val word) {
        const Val count = least(b_.i64(cached_words_), b_.sub(count_, word));
        const Val round = b_.index_div(word, Dim(cached_words_));
        const Val is_last = b_.cmp(kir::Pred::kEq, b_.add(word, count), count_);
        b_.if_then(there, [&] { pack_words(panel, word, count); });
        for_each_tile([&](Val row, Val place, int64_t rows) {
          b_.if_then(there, [&] { emit_tile(place, rows, panel, word, count); });
          b_.if_then(finishes, [&] {
            const Val share = b_.i64(ceil_div(rows, rounds));
            const Val from = least(b_.mul(round, share), b_.i64(rows));
            const Val to =
                b_.select(is_last, b_.i64(rows), least(b_.add(from, share), b_.i64(rows)));
            finish(row, place, before, from, to);
          });
        });
      });
    });
  }

  // Packs words of a panel from `word` of the depth block on, where no memory holds them packed.
  void pack_words(Val panel, Val word, Val count) {
    if (e_.packed_buffer) return;
    b_.loop(b_.i64(0), count, {}, [&](Val w) {
      const Val line = b_.mul(w, b_.i64(kPanelColumns));
      b_.loop(b_.i64(0), b_.i64(kPanelColumns), {.vector = true, .multiple = kPanelColumns},
              [&](Val j) {
                const Index at = at_.right(panel, b_.add(from_, b_.add(word, w)), j);
                b_.store(panel_, b_.add(line, j), e_.context.element(p_, at));
              });
    });
  }

  // Calls visit(row, place, rows) for the tiles of the block: rows from `row`, which stand in
  // scratch memory from row `place`.
  void for_each_tile(const std::function<void(Val, Val, int64_t)>& visit) {
    const Val full = b_.binary(kir::Op::kSDiv, b_.sub(last_row_, first_row_), b_.i64(tile_rows_));
    const std::optional<int64_t> rows = at_.rows().static_value();
    if (rows && *rows == 0) return;
    b_.loop(b_.i64(0), full, {}, [&](Val t) {
      const Val place = b_.mul(t, b_.i64(tile_rows_));
      visit(b_.add(first_row_, place), place, tile_rows_);
    });
    if (rows && *rows <= tile_rows_) return;
    const Val place = b_.mul(full, b_.i64(tile_rows_));
    const Val row = b_.add(first_row_, place);
    if (rows) {
      const int64_t rest = *rows % tile_rows_;
      if (rest == 0) return;
      b_.if_then(b_.cmp(kir::Pred::kSLt, row, last_row_), [&] { visit(row, place, rest); });
      return;
    }
    int64_t units = 0;  // that the tiles before take
    for_each_power(b_, row, b_.sub(last_row_, row), tile_rows_, [&](Val from, int64_t tile) {
      visit(from, b_.add(place, b_.i64(kRowUnit * units++)), tile);
    });
  }

  void emit_tile(Val place, int64_t rows, Val panel, Val word, Val count) {
    PanelDot spec;
    spec.kind = kind_of(a_.dtype());
    spec.left = tile_;
    spec.right = e_.packed_buffer.value_or(panel_);
    spec.rows = rows;
    spec.sums_stride = kPanelColumns;
    spec.left_stride = row_stride(rows);
    spec.left_step = line_step(rows);
    const Val sums = sums_of(panel, place);
    const Val left =
        b_.add(b_.mul(place, b_.i64(stride_)), b_.mul(word, b_.i64(line_step(rows) / kUnit)));
    const Val right =
        e_.packed_buffer
            ? ops::flatten_index(b_, p_.shape(), at_.right(panel, b_.add(from_, word), b_.i64(0)))
            : b_.i64(0);
    Val add = is_blocked() ? later_ : b_.boolean(false);
    if (is_cached_) add = b_.binary(kir::Op::kOr, add, b_.cmp(kir::Pred::kNe, word, b_.i64(0)));
    Val next = nullptr;
    if (is_cached_ && e_.packed_buffer) {
      const Val quarter =
          b_.binary(kir::Op::kAnd, b_.index_div(place, Dim(kTileRows)), b_.i64(kCallingTiles - 1));
      const Val share = b_.mul(count, b_.i64(kPanelColumns / kCallingTiles));
      next = b_.add(b_.add(right, b_.mul(count, b_.i64(kPanelColumns))), b_.mul(quarter, share));
    }
    b_.panel_dot(spec, sums_, sums, left, right, count, add, next);
  }

  // Where the sums of a tile and panel start.
  Val sums_of(Val panel, Val place) {
    if (!is_blocked() && !is_cached_) return b_.i64(0);
    const Val number = b_.sub(panel, first_panel_);
    const Val slot = is_blocked() ? number : b_.binary(kir::Op::kAnd, number, b_.i64(1));
    return b_.mul(b_.add(b_.mul(slot, b_.dim(slots_)), place), b_.i64(kPanelColumns));
  }

  // A tile of more rows than a row unit stands in lines of 16 words: the first of every row, then
  // the second, so that its loads go through memory in order. Words between rows, and between the
  // lines of a row:
  int64_t row_stride(int64_t rows) const { return rows > kRowUnit ? kUnit : stride_; }
  static int64_t line_step(int64_t rows) {
    return rows > kRowUnit ? round_up(rows, kRowUnit) * kUnit : kUnit;
  }

  // Rows of whole words, zeros past the common dimension.
  void copy_tile(Val row, Val place, int64_t rows) {
    const Val from = b_.mul(from_, b_.i64(each_));
    const Val room = b_.mul(count_, b_.i64(each_));
    const Val left = b_.binary(kir::Op::kSMax, b_.sub(b_.dim(depth_), from), b_.i64(0));
    const Val there = least(room, left);
    const kir::Type type = kir::type_of(a_.dtype());
    const Val zero = kir::is_float(type) ? b_.constant_float(type, 0.0) : b_.constant_int(type, 0);
    const bool exact =
        depth_.is_static() && depth_.value() % (kUnit * each_) == 0 && depth_.value() > 0;
    const int64_t line = kUnit * each_;
    // `count` elements of a row from `k` on, zeros from there to `end`.
    const auto copy = [&](Val r, Val k, Val to, Val count, Val end, int64_t multiple) {
      b_.loop(b_.i64(0), count, {.vector = true, .multiple = multiple}, [&](Val i) {
        const Val at = b_.add(from, b_.add(k, i));
        b_.store(tile_, b_.add(to, i), e_.context.element(a_, at_.left(b_.add(row, r), at)));
      });
      if (exact) return;
      b_.loop(count, end, {.vector = true}, [&](Val i) { b_.store(tile_, b_.add(to, i), zero); });
    };
    const Val first = b_.mul(place, b_.i64(stride_ * each_));
    const auto row_at = [&](Val r) {
      return b_.add(first, b_.mul(r, b_.i64(row_stride(rows) * each_)));
    };
    if (rows <= kRowUnit) {
      b_.loop(b_.i64(0), b_.i64(rows), {},
              [&](Val r) { copy(r, b_.i64(0), row_at(r), there, room, 1); });
      return;
    }
    // Some lines of every row at a time, which fill the first cache's lines that they share.
    b_.loop(b_.i64(0), room, {.step = kLinesTogether * line}, [&](Val group) {
      const Val group_end = least(b_.add(group, b_.i64(kLinesTogether * line)), room);
      b_.loop(b_.i64(0), b_.i64(rows), {}, [&](Val r) {
        b_.loop(group, group_end, {.step = line}, [&](Val k) {
          const Val line_at = b_.add(row_at(r), b_.mul(k, b_.i64(line_step(rows) / kUnit)));
          const Val end = b_.i64(line);
          const Val rest = b_.binary(kir::Op::kSMax, b_.sub(there, k), b_.i64(0));
          copy(r, k, line_at, exact ? end : least(rest, end), end, exact ? line : 1);
        });
      });
    });
  }

  // Rows `from` to `to` of the tile's results.
  void finish(Val row, Val place, Val panel, Val from, Val to) {
    const Val sums = sums_of(panel, place);
    b_.loop(from, to, {}, [&](Val r) {
      const Val line = b_.add(sums, b_.mul(r, b_.i64(kPanelColumns)));
      const Val first = b_.mul(panel, b_.i64(kPanelColumns));
      b_.loop(b_.i64(0), b_.i64(kPanelColumns), {.vector = true, .multiple = kPanelColumns},
              [&](Val j) {
                const Val column = b_.add(first, j);
                Val inside = nullptr;
                if (!columns_.is_static() || columns_.value() % kPanelColumns != 0) {
                  inside = b_.cmp(kir::Pred::kSLt, column, b_.dim(columns_));
                }
                const Val sum = b_.load(sums_, b_.add(line, j));
                e_.finish(at_.result(b_.add(row, r), column),
                          ops::cast(b_, sum, acc_, e_.matmul.types[0].dtype), inside);
              });
    });
  }

  const MatmulEmission& e_;
  kir::Builder& b_;
  const ir::Value& a_;
  const ir::Value& p_;
  MatmulIndex at_;
  DType acc_;

  Dim depth_, words_, columns_, panels_;
  int64_t each_ = 1;  // elements in a word
  int64_t tile_rows_ = 0, depth_block_ = 0, stride_ = 0;
  bool is_cached_ = false;  // panels are taken kDepthCached words at a time
  int64_t cached_words_ = 0;
  Dim part_words_, depth_blocks_, block_rows_, slots_, block_panels_;
  uint32_t tile_ = 0, sums_ = 0, panel_ = 0;

  // Values of the block being emitted.
  Val first_panel_ = nullptr, last_panel_ = nullptr, first_row_ = nullptr, last_row_ = nullptr;
  Val part_from_ = nullptr, from_ = nullptr, count_ = nullptr, later_ = nullptr, last_ = nullptr;
};

}  // namespace

void emit_panel_matmul(const MatmulEmission& emission) { PanelGemm(emission).emit(); }

}  // namespace tenon::passes
