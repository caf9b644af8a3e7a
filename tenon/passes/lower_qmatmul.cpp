#include "tenon/passes/lower_qmatmul.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tenon/ops/packed_qmatmul.h"
#include "tenon/ops/quantized.h"
#include "tenon/passes/blocking.h"
#include "tenon/quant/codes.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Type;
using kir::Val;
using ops::Index;
using ops::kPanelColumns;
using ops::kQuantBlock;

// Rows of a tile. Exact products hold two vectors of sums a row and the decoded vectors beside
// them, in 32 registers or in 16; int8 ones integer and float sums, and where dot4us takes several
// instructions more rows pay for what does not fit.
constexpr int64_t kExactRows = 10;
constexpr int64_t kExactRowsNarrow = 4;
constexpr int64_t kInt8Rows = 6;
constexpr int64_t kTilesPerTask = 28;  // rows of activations that stay in the second cache
constexpr int64_t kTasksPerThread = 4;
constexpr int64_t kAheadBlocks = 4;  // of a panel, called into the first cache

class QuantizedGemm {
 public:
  explicit QuantizedGemm(const MatmulEmission& emission)
      : e_(emission),
        b_(emission.context.builder()),
        node_(emission.matmul),
        int8_(node_.op == &ops::kQmatmulInt8),
        layout_(*quant::code_layout(ops::format_of(node_).encoding)),
        codes_(node_.operands[int8_ ? 3 : 1]),
        scales_(node_.operands[int8_ ? 4 : 2]) {
    const Shape& shape = node_.types[0].shape;
    row_shape_ = Shape(shape.begin(), shape.end() - 1);
    rows_ = product(row_shape_);
    columns_ = shape.back();
    panels_ = codes_.shape()[0];
    blocks_ = codes_.shape()[1];
    words_ = codes_.shape()[2].value();
    groups_ = kQuantBlock / layout_.group;
    tile_rows_ = int8_ ? kInt8Rows : e_.wide ? kExactRows : kExactRowsNarrow;
    if (auto rows = rows_.static_value()) tile_rows_ = std::clamp<int64_t>(*rows, 1, tile_rows_);
  }

  void emit() {
    const Dim task_rows(kTilesPerTask * tile_rows_);
    const Dim row_blocks = ceil_div(rows_, task_rows);
    const Dim threads(kir::kDimThreads, {.min = 1});
    const Dim panel_bytes =
        blocks_ *
        Dim(kPanelColumns * (4 * words_ + scales_.shape()[2].value() *
                                              static_cast<int64_t>(size_of(scales_.dtype()))));
    const Dim fit = floor_div(Dim(kir::kDimL2, {.min = 1}), panel_bytes * Dim(2) + Dim(1));
    const Dim share = ceil_div(panels_ * row_blocks, threads * Dim(kTasksPerThread));
    const Dim task_panels = dim_max(dim_min(share, fit), Dim(1));
    const Dim column_blocks = ceil_div(panels_, task_panels);

    kir::Kernel& kernel = b_.kernel();
    kernel.grid = row_blocks * column_blocks;
    kernel.bytes_per_index = task_panels * panel_bytes;
    kernel.ops_per_index =
        task_panels * Dim(2 * kPanelColumns * kQuantBlock) * blocks_ * dim_min(rows_, task_rows);
    b_.loop(b_.begin(), b_.end(), {.parallel = true}, [&](Val g) {
      const Val row_block = b_.index_div(g, column_blocks);
      first_panel_ = b_.mul(b_.index_rem(g, column_blocks), b_.dim(task_panels));
      last_panel_ =
          b_.binary(Op::kSMin, b_.add(first_panel_, b_.dim(task_panels)), b_.dim(panels_));
      const Val first = b_.mul(row_block, b_.dim(task_rows));
      const Val last = b_.binary(Op::kSMin, b_.add(first, b_.dim(task_rows)), b_.dim(rows_));
      emit_rows(first, last);
    });
  }

 private:
  // Whole tiles, then the rest in powers of two.
  void emit_rows(Val first, Val last) {
    const Val count = b_.sub(last, first);
    const Val full = b_.binary(Op::kSDiv, count, b_.i64(tile_rows_));
    b_.loop(b_.i64(0), full, {},
            [&](Val t) { emit_tile(b_.add(first, b_.mul(t, b_.i64(tile_rows_))), tile_rows_); });
    const Val row = b_.add(first, b_.mul(full, b_.i64(tile_rows_)));
    for_each_power(b_, row, b_.sub(last, row), tile_rows_,
                   [&](Val from, int64_t tile) { emit_tile(from, tile); });
  }

  void emit_tile(Val row, int64_t rows) {
    row_index_.clear();
    for (int64_t r = 0; r < rows; ++r) {
      row_index_.push_back(ops::unflatten_index(b_, row_shape_, b_.add(row, b_.i64(r))));
    }
    b_.loop(first_panel_, last_panel_, {}, [&](Val panel) {
      const kir::LoopSpec spec{.vector = true, .interleave = 2, .multiple = kPanelColumns};
      b_.loop(b_.i64(0), b_.i64(kPanelColumns), spec, [&](Val j) { emit_panel(panel, j); });
    });
  }

  void emit_panel(Val panel, Val j) {
    const std::vector<kir::CarriedSpec> zeros(row_index_.size(),
                                              {b_.constant_float(Type::kF32, 0)});
    const std::vector<Val> sums =
        b_.loop(b_.i64(0), b_.dim(blocks_), {}, zeros, [&](Val block, std::span<const Val> sums) {
          return int8_ ? int8_block(panel, block, j, sums) : exact_block(panel, block, j, sums);
        });
    const Val column = b_.add(b_.mul(panel, b_.i64(kPanelColumns)), j);
    Val inside = nullptr;
    if (!columns_.is_static() || columns_.value() % kPanelColumns != 0) {
      inside = b_.cmp(kir::Pred::kSLt, column, b_.dim(columns_));
    }
    for (size_t r = 0; r < row_index_.size(); ++r) e_.finish(at(r, column), sums[r], inside);
  }

  // ── exact ────────────────────────────────────────────────────────────────────────────────────

  std::vector<Val> exact_block(Val panel, Val block, Val j, std::span<const Val> sums) {
    std::vector<Val> next(sums.begin(), sums.end());
    // The elements of bytes, or those of the low nibbles and then those of the high ones.
    const int64_t planes = nibbles() ? 2 : 1;
    for (int64_t plane = 0; plane < planes; ++plane) {
      const int64_t group = plane * groups_ / planes;
      const Val scale = scale_row(panel, block, group, j);
      const Val offset =
          layout_.has_offset
              ? scale_row(panel, block, groups_ + group, j)
              : b_.mul(scale, b_.constant_float(Type::kF32, -static_cast<double>(layout_.zero)));
      const std::vector<kir::CarriedSpec> init = carried(next);
      next = b_.loop(b_.i64(0), b_.i64(8 / planes), {}, init, [&](Val w, std::span<const Val> in) {
        std::vector<Val> out(in.begin(), in.end());
        const Val word = code_word(panel, block, w, j);
        const Val first = b_.add(b_.mul(block, b_.i64(kQuantBlock)), b_.mul(w, b_.i64(4)));
        for (int64_t byte = 0; byte < 4; ++byte) {
          Val code = code_of(word, plane, byte);
          if (extra_bits() > 0) {
            code = b_.binary(Op::kOr, code, upper_bits(panel, block, w, j, plane, byte));
          }
          const Val value =
              b_.ternary(Op::kMulAdd, scale, b_.convert(Op::kSToF, Type::kF32, code), offset);
          const Val k = b_.add(first, b_.i64(16 * plane + byte));
          for (size_t r = 0; r < out.size(); ++r) {
            const Val x = e_.context.element(node_.operands[0], at(r, k));
            out[r] = b_.ternary(Op::kMulAdd, x, value, out[r]);
          }
        }
        return out;
      });
    }
    return next;
  }

  static std::vector<kir::CarriedSpec> carried(const std::vector<Val>& values) {
    std::vector<kir::CarriedSpec> specs;
    for (Val value : values) specs.push_back({value});
    return specs;
  }

  bool nibbles() const { return layout_.code_bits < 8; }
  int64_t extra_bits() const { return nibbles() ? layout_.code_bits - 4 : 0; }

  // Code `byte` of a word, of its low or high nibbles.
  Val code_of(Val word, int64_t plane, int64_t byte) {
    const int64_t shift = 8 * byte + 4 * plane;
    const int64_t width = nibbles() ? 4 : 8;
    Val code = shift == 0 ? word : b_.binary(Op::kLShr, word, number(shift));
    if (shift + width < 32) code = b_.binary(Op::kAnd, code, number((1 << width) - 1));
    return code;
  }

  // The bits above the nibble of element 16 · plane + 4w + byte, in their place.
  Val upper_bits(Val panel, Val block, Val w, Val j, int64_t plane, int64_t byte) {
    const int64_t bits = extra_bits();
    const Val upper = code_word(panel, block, b_.i64(4 + (bits == 2 ? plane : 0)), j);
    const Val from = b_.convert(Op::kIntTrunc, Type::kI32, b_.mul(w, b_.i64(bits)));
    const int64_t more = 8 * byte + (bits == 1 ? 4 * plane : 0);
    const Val shifted = b_.binary(Op::kLShr, upper, b_.add(from, number(more)));
    const Val code = b_.binary(Op::kAnd, shifted, number((1 << bits) - 1));
    return b_.binary(Op::kShl, code, number(4));
  }

  Val number(int64_t value) { return b_.constant_int(Type::kI32, value); }

  // ── int8 ─────────────────────────────────────────────────────────────────────────────────────

  std::vector<Val> int8_block(Val panel, Val block, Val j, std::span<const Val> sums) {
    std::vector<Val> next(sums.begin(), sums.end());
    const std::vector<Val> words = byte_words(panel, block, j);
    for (int64_t group = 0; group < groups_; ++group) {
      const Val group_index = b_.add(b_.mul(block, b_.i64(groups_)), b_.i64(group));
      std::vector<Val> row_sums;
      std::vector<Val> dots;
      for (size_t r = 0; r < next.size(); ++r) {
        row_sums.push_back(e_.context.element(node_.operands[2], at(r, group_index)));
        dots.push_back(from_zero(row_sums.back()));
      }
      // A word meets all rows before the next one is needed.
      const int64_t count = 8 / groups_;
      for (int64_t w = group * count; w < (group + 1) * count; ++w) {
        const Val k = b_.add(b_.mul(block, b_.i64(kQuantBlock)), b_.i64(4 * w));
        for (size_t r = 0; r < next.size(); ++r) {
          const Val x = e_.context.bytes(node_.operands[0], at(r, k), Type::kI32);
          dots[r] = b_.ternary(Op::kDot4, dots[r], words[static_cast<size_t>(w)], x);
        }
      }
      const Val scale = scale_row(panel, block, group, j);
      const Val offset = layout_.has_offset ? scale_row(panel, block, groups_ + group, j) : nullptr;
      for (size_t r = 0; r < next.size(); ++r) {
        const Val step = e_.context.element(node_.operands[1], at(r, block));
        const Val whole = b_.convert(Op::kSToF, Type::kF32, dots[r]);
        next[r] = b_.ternary(Op::kMulAdd, b_.mul(scale, step), whole, next[r]);
        if (offset != nullptr) {
          next[r] = b_.ternary(Op::kMulAdd, offset, b_.mul(step, row_sums[r]), next[r]);
        }
      }
    }
    return next;
  }

  // What the codes' zero adds to a sum of products, taken away beforehand.
  Val from_zero(Val sum) {
    const Val zero = b_.constant_int(Type::kI32, 0);
    if (layout_.zero == 0) return zero;
    const Val whole = b_.convert(Op::kFToS, Type::kI32, sum);
    return b_.mul(whole, b_.constant_int(Type::kI32, -layout_.zero));
  }

  // The block's codes as eight words of four bytes, by rising k.
  std::vector<Val> byte_words(Val panel, Val block, Val j) {
    std::vector<Val> words;
    for (int64_t w = 0; w < words_; ++w) words.push_back(code_word(panel, block, b_.i64(w), j));
    if (!nibbles()) return words;
    const Val mask = number(0x0f0f0f0f);
    std::vector<Val> bytes;
    for (size_t w = 0; w < 8; ++w) {
      Val word = words[w % 4];
      if (w >= 4) word = b_.binary(Op::kLShr, word, number(4));
      word = b_.binary(Op::kAnd, word, mask);
      if (extra_bits() > 0) word = b_.binary(Op::kOr, word, upper_bytes(words, w));
      bytes.push_back(word);
    }
    return bytes;
  }

  // The bits above the nibbles of word `w` of eight, each in its byte.
  Val upper_bytes(const std::vector<Val>& words, size_t w) {
    const auto bits = static_cast<size_t>(extra_bits());
    const size_t sharing = 8 / bits;
    const Val upper = words[4 + w / sharing];
    const auto shift = static_cast<int64_t>(bits * (w % sharing)) - 4;
    const Val placed = shift >= 0 ? b_.binary(Op::kLShr, upper, number(shift))
                                  : b_.binary(Op::kShl, upper, number(-shift));
    return b_.binary(Op::kAnd, placed, number(bits == 1 ? 0x10101010 : 0x30303030));
  }

  // ── operands ─────────────────────────────────────────────────────────────────────────────────

  Val code_word(Val panel, Val block, Val w, Val j) {
    if (e_.packed_buffer) {
      const std::array<Val, 4> ahead = {panel, b_.add(block, b_.i64(kAheadBlocks)), w, j};
      b_.prefetch(*e_.packed_buffer, ops::flatten_index(b_, codes_.shape(), ahead));
    }
    const std::array<Val, 4> index = {panel, block, w, j};
    return e_.context.element(codes_, index);
  }

  Val scale_row(Val panel, Val block, int64_t row, Val j) {
    const std::array<Val, 4> index = {panel, block, b_.i64(row), j};
    return ops::to_arith(b_, e_.context.element(scales_, index));
  }

  // The index of row `r` of the tile, at `last` in the last dimension.
  Index at(size_t r, Val last) const {
    Index index = row_index_[r];
    index.push_back(last);
    return index;
  }

  const MatmulEmission& e_;
  kir::Builder& b_;
  const ir::Node& node_;
  const bool int8_;
  const quant::CodeLayout& layout_;
  const ir::Value& codes_;
  const ir::Value& scales_;

  Shape row_shape_;
  Dim rows_, columns_, panels_, blocks_;
  int64_t words_ = 0, groups_ = 0, tile_rows_ = 0;

  // Of the task, and of the tile, being emitted.
  Val first_panel_ = nullptr, last_panel_ = nullptr;
  std::vector<Index> row_index_;
};

}  // namespace

void emit_quantized_matmul(const MatmulEmission& emission) { QuantizedGemm(emission).emit(); }

}  // namespace tenon::passes
