#include "tenon/passes/lower_matmul.h"

#include <algorithm>
#include <vector>

#include "tenon/ops/packed_matmul.h"
#include "tenon/passes/blocking.h"
#include "tenon/passes/lower_panel_matmul.h"
#include "tenon/passes/matmul_blocking.h"
#include "tenon/passes/matmul_index.h"

namespace tenon::passes {
namespace {

using kir::Val;
using ops::Index;
using ops::kPanelColumns;

class Gemm {
 public:
  explicit Gemm(const MatmulEmission& emission)
      : e_(emission),
        b_(emission.context.builder()),
        a_(emission.matmul.operands[0]),
        p_(emission.matmul.operands[1]),
        at_(b_, emission.matmul),
        cut_(emission, at_),
        acc_(kir::type_of(cut_.accumulator)) {}

  void emit() {
    kir::Kernel& kernel = b_.kernel();
    scratch_ = b_.add_scratch("tiles", cut_.accumulator, cut_.block_rows * Dim(cut_.stride));
    if (cut_.depth_blocks != Dim(1) && !e_.partial_buffer) {
      partial_ = b_.add_scratch("partial", cut_.accumulator,
                                cut_.block_rows * cut_.block_panels * Dim(kPanelColumns));
    }
    Dim column_blocks = ceil_div(cut_.panels, cut_.block_panels);
    Dim row_blocks = ceil_div(cut_.rows, cut_.block_rows);
    kernel.grid = at_.tasks() * row_blocks * column_blocks;
    Dim columns = cut_.block_panels * Dim(kPanelColumns);
    auto bytes = static_cast<int64_t>(size_of(p_.dtype()));
    kernel.bytes_per_index = columns * cut_.part_depth * Dim(bytes);
    kernel.ops_per_index = columns * cut_.part_depth * dim_min(cut_.rows, cut_.block_rows) * Dim(2);
    b_.loop(b_.begin(), b_.end(), {.parallel = true}, [&](Val g) {
      Val column_block = b_.index_rem(g, column_blocks);
      Val rest = b_.index_div(g, column_blocks);
      Val row_block = b_.index_rem(rest, row_blocks);
      const Val part = at_.set_task(b_.index_div(rest, row_blocks));
      part_from_ = b_.mul(part, b_.dim(cut_.part_depth));
      first_panel_ = b_.mul(column_block, b_.dim(cut_.block_panels));
      last_panel_ = b_.binary(kir::Op::kSMin, b_.add(first_panel_, b_.dim(cut_.block_panels)),
                              b_.dim(cut_.panels));
      first_row_ = b_.mul(row_block, b_.dim(cut_.block_rows));
      last_row_ =
          b_.binary(kir::Op::kSMin, b_.add(first_row_, b_.dim(cut_.block_rows)), b_.dim(cut_.rows));
      if (cut_.depth_blocks == Dim(1)) {
        emit_depth_block(b_.i64(0));
      } else {
        b_.loop(b_.i64(0), b_.dim(cut_.depth_blocks), {},
                [&](Val block) { emit_depth_block(block); });
      }
    });
  }

 private:
  Val least(Val a, Val b) { return b_.binary(kir::Op::kSMin, a, b); }

  void emit_depth_block(Val block) {
    const Val into = b_.mul(block, b_.i64(cut_.depth_block));
    depth_from_ = b_.add(part_from_, into);
    const bool whole_blocks = cut_.depth.is_static() && cut_.depth.value() > 0 &&
                              cut_.part_depth * at_.parts() == cut_.depth &&
                              cut_.part_depth.value() % cut_.depth_block == 0;
    if (whole_blocks) {
      depth_count_ = b_.i64(cut_.depth_block);
    } else {
      // The last part may be short, those that follow it empty.
      const Val whole = least(b_.i64(cut_.depth_block), b_.sub(b_.dim(cut_.part_depth), into));
      const Val rest = b_.sub(b_.dim(cut_.depth), depth_from_);
      depth_count_ =
          !at_.in_parts() ? whole : b_.binary(kir::Op::kSMax, least(whole, rest), b_.i64(0));
    }
    first_block_ = b_.cmp(kir::Pred::kEq, block, b_.i64(0));
    last_block_ = b_.cmp(kir::Pred::kEq, block, b_.dim(cut_.depth_blocks - Dim(1)));

    for_each_tile([&](Val row, Val place, int64_t rows) { copy_tile(row, place, rows); });
    Val count = b_.sub(last_panel_, first_panel_);
    Val from = first_panel_;
    const int64_t together = panels_at_once(cut_.tile_rows, e_.wide, !e_.packed_buffer);
    for (int64_t group = std::min(together, cut_.together); group >= 1; group = group > 1 ? 1 : 0) {
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
    const std::optional<int64_t> rows = cut_.rows.static_value();
    if (rows && *rows <= cut_.tile_rows) {
      if (*rows > 0) visit(first_row_, b_.i64(0), *rows);
      return;
    }
    const Val count = b_.sub(last_row_, first_row_);
    const Val full = b_.binary(kir::Op::kSDiv, count, b_.i64(cut_.tile_rows));
    b_.loop(b_.i64(0), full, {}, [&](Val t) {
      const Val place = b_.mul(t, b_.i64(cut_.tile_rows));
      visit(b_.add(first_row_, place), place, cut_.tile_rows);
    });
    const Val place = b_.mul(full, b_.i64(cut_.tile_rows));
    const Val row = b_.add(first_row_, place);
    // Whole tiles fill every block but the last, or there is one block.
    if (rows && (cut_.tile_rows == cut_.most_rows || *rows <= cut_.most_rows)) {
      const int64_t rest = *rows % cut_.tile_rows;
      if (rest == 0) return;
      b_.if_then(b_.cmp(kir::Pred::kSLt, row, last_row_), [&] { visit(row, place, rest); });
      return;
    }
    for_each_power(b_, row, b_.sub(last_row_, row), cut_.tile_rows,
                   [&](Val first, int64_t tile) { visit(first, b_.sub(first, first_row_), tile); });
  }

  void copy_tile(Val row, Val place, int64_t rows) {
    b_.loop(b_.i64(0), b_.i64(rows), {}, [&](Val r) {
      Index index = at_.left(b_.add(row, r), nullptr);
      Val to = b_.mul(b_.add(place, r), b_.i64(cut_.stride));
      b_.loop(b_.i64(0), depth_count_, {.vector = true}, [&](Val k) {
        index.back() = b_.add(depth_from_, k);
        Val value = ops::cast(b_, e_.context.element(a_, index), a_.dtype(), cut_.accumulator);
        b_.store(scratch_, b_.add(to, k), value);
      });
    });
  }

  // `rows` rows from `row` times the panels from `panel`.
  void emit_panels(Val row, Val place, int64_t rows, Val panel, int64_t group) {
    const int64_t lanes = cut_.is_narrow ? kNarrowColumns : kPanelColumns;
    kir::LoopSpec spec{.vector = true, .interleave = cut_.is_narrow ? 1 : 2, .multiple = lanes};
    b_.loop(b_.i64(0), b_.i64(lanes), spec, [&](Val j) {
      std::vector<Val> column(static_cast<size_t>(group));
      std::vector<Val> inside(static_cast<size_t>(group), nullptr);
      std::vector<kir::CarriedSpec> init;
      for (int64_t q = 0; q < group; ++q) {
        auto at = static_cast<size_t>(q);
        Val first = b_.mul(b_.add(panel, b_.i64(q)), b_.i64(kPanelColumns));
        column[at] = b_.add(first, j);
        if (!cut_.columns.is_static() || cut_.columns.value() % kPanelColumns != 0) {
          inside[at] = b_.cmp(kir::Pred::kSLt, column[at], b_.dim(cut_.columns));
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t q = 0; q < group; ++q) {
          init.push_back({initial(b_.add(row, b_.i64(r)), b_.add(panel, b_.i64(q)), j,
                                  column[static_cast<size_t>(q)], inside[static_cast<size_t>(q)])});
        }
      }
      if (cut_.depth_blocks != Dim(1)) prefetch_partials(row, rows, panel, group, j);
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
                    ops::cast(b_, sum, cut_.accumulator, e_.matmul.types[0].dtype), inside[at]);
        });
      };
      if (cut_.depth_blocks == Dim(1)) {
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
    const Val left_from = b_.mul(place, b_.i64(cut_.stride));
    return b_.loop(
        b_.i64(0), depth_count_, {}, init,
        [&](Val k, std::span<const Val> carried) -> std::vector<Val> {
          std::vector<Val> right;
          for (int64_t q = 0; q < group; ++q) {
            Index index = at_.right(b_.add(panel, b_.i64(q)), b_.add(depth_from_, k), j);
            right.push_back(
                ops::cast(b_, e_.context.element(p_, index), p_.dtype(), cut_.accumulator));
            prefetch_right(b_.add(panel, b_.i64(q)), k, j);
          }
          std::vector<Val> next;
          for (int64_t r = 0; r < rows; ++r) {
            Val left = b_.load(scratch_, b_.add(b_.add(left_from, b_.i64(r * cut_.stride)), k));
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
    const Val far = b_.add(depth_from_, b_.add(k, b_.i64(cut_.ahead)));
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
    Val line = b_.mul(b_.sub(row, first_row_), b_.dim(cut_.block_panels * Dim(kPanelColumns)));
    Val place = b_.mul(b_.sub(panel, first_panel_), b_.i64(kPanelColumns));
    *index = b_.add(b_.add(line, place), j);
    return partial_;
  }

  Val initial(Val row, Val panel, Val j, Val column, Val inside) {
    Val zero = b_.constant_float(acc_, 0.0);
    if (cut_.depth_blocks == Dim(1)) return zero;
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
  const MatmulBlocking cut_;
  kir::Type acc_;

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
