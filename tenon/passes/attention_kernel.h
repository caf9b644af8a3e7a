// What the parts of an attention kernel share: dimensions, the sizes that it works in, scratch
// memory, and the values of the block of rows and the tile that are being emitted.
#pragma once

#include <functional>
#include <vector>

#include "tenon/ops/attention.h"
#include "tenon/passes/kernel_frame.h"

namespace tenon::passes {

struct AttentionKernel {
  static constexpr int64_t kTileRows = 12;   // half of them where there are 16 vector registers
  static constexpr int64_t kPanel = 32;      // columns that a tile computes at once
  static constexpr int64_t kWidePanel = 64;  // the same for a tile of few rows
  static constexpr int64_t kKeyBlock = 256;  // keys of which a tile's scores are held
  static constexpr int64_t kPadding = 16;    // keeps rows of scratch in different cache sets
  static constexpr int64_t kScoreStride = kKeyBlock + kPadding;
  static constexpr int64_t kWordKeys = 64;  // as kKeyBlock, in words
  static constexpr int64_t kWordRows = 32;  // rows of a tile in words
  static constexpr int64_t kWordTerms = 3;  // bf16 numbers that are an f32 number together
  static constexpr int64_t kPairStride = kWordTerms * kWordRows;  // of scores of two keys

  // `wide`: the target has 32 vector registers; where has_words, it has matrix tiles too. Declares
  // the scratch memory, the same for all forms.
  AttentionKernel(KernelFrame& kernel_frame, bool wide);

  kir::Val number(double value) { return b.constant_float(type, value); }
  kir::Val lowest();
  kir::Val at_least(kir::Val x, kir::Val least) { return b.binary(kir::Op::kSMax, x, least); }
  kir::Val at_most(kir::Val x, kir::Val most) { return b.binary(kir::Op::kSMin, x, most); }
  // a * y + c.
  kir::Val muladd(kir::Val x, kir::Val y, kir::Val z) {
    return b.ternary(kir::Op::kMulAdd, x, y, z);
  }
  kir::Val ceil_of(kir::Val x, int64_t divisor);  // ⌈x / divisor⌉ of x ≥ 0

  // Index of a matrix of q, k or v, without row and column.
  ops::Index matrix_index(const ir::Value& value, kir::Val head);
  // Element of keys or values in the type of scores; read where `inside` holds, everywhere without
  // one.
  kir::Val shared_element(const ir::Value& value, kir::Val key, kir::Val at, kir::Val inside);

  // What a row is: a query of a head. Keys low ≤ t < high are in its reach.
  struct Row {
    kir::Val head;
    kir::Val query;
    kir::Val low = nullptr;
    kir::Val high = nullptr;
  };
  Row row_at(kir::Val row);
  // The keys that queries first … last reach together.
  void set_reach(Row& row, kir::Val first, kir::Val last);
  // Where keys low ≤ t < high meet the block from first_key on: panels first_panel … panels of it,
  // which are the keys from … end, of which `count` are reached. `any`: there are some.
  struct Met {
    kir::Val first_panel = nullptr, panels = nullptr;
    kir::Val from = nullptr, count = nullptr, end = nullptr;
    kir::Val any = nullptr;
  };
  Met meet(kir::Val low, kir::Val high);
  // The pairs of keys of `met`.
  kir::Val first_pair() { return b.mul(met.first_panel, b.i64(kPanel / 2)); }
  kir::Val pairs_end() { return b.mul(met.panels, b.i64(kPanel / 2)); }
  // Rows that only fill the last tile repeat the last one.
  kir::Val clamped_row(kir::Val r);

  // Transposed keys of few rows are read straight: their block is used by one tile.
  bool packs_keys() const { return !few; }
  // Values of many rows are converted once for all tiles.
  bool packs_values() const { return !few && parts.v.dtype() != parts.compute; }
  // Whether this is the form in words (attention_words.h).
  bool in_words() const { return has_words && is_wide; }
  // In words: whether all rows of a tile have one mask; whether two of its elements are a word.
  bool mask_is_shared() const;
  bool mask_in_pairs() const;
  bool ends_in_panel() const { return !keys.is_static() || keys.value() % kPanel != 0; }

  KernelFrame& frame;
  kir::Builder& b;
  const ir::Node& node;
  ops::AttentionParts parts;
  kir::Type type;  // of scores, weights and sums
  bool is_wide;

  Shape batch;
  Dim groups, queries, depth, keys, columns, rows;
  Dim pieces = 1;          // of the keys, with `part`
  int64_t per_group = 1;   // heads that share a key head
  int64_t tile = 1;        // rows of a tile
  int64_t panel = kPanel;  // columns of the result at once
  int interleave = 2;      // vectors of them at once
  int64_t key_block = kKeyBlock;
  Dim block_rows, depth_stride, sums_stride;
  bool few = false;         // one tile takes the keys as they stand
  bool transposed = false;  // keys stand one beside another in memory
  bool bounded = false;     // rows reach different or run-time numbers of keys
  bool has_words = false;   // there is a form in words, and this is it where is_wide
  // In words: of a row of queries or keys, of a row of turned values; rows of turned sums.
  int64_t depth_words = 0, value_stride = 0, word_columns = 0;

  // Scratch memory: of the block's rows (scaled queries, sums of weighted values, the base that is
  // subtracted from scores and the sums of weights, a slot for each column of a panel),
  uint32_t query = 0, sums = 0, top = 0, totals = 0;
  // of a block of keys (in panels [depth, kPanel], a panel's keys as they stand, and values
  // converted, in rows of sums_stride),
  uint32_t packed = 0, lines = 0, values = 0;
  // and of a tile: scores, which become weights, by how much the sums so far shrink, and of one
  // row the largest scores and whether they raise its base.
  uint32_t scores = 0, shrink = 0, maxima = 0, raises = 0;
  // The form in words: queries in panels [depth_words, kWordRows] and sums [word_columns,
  // kWordRows] of each tile of the block; keys [keys, depth_words] and values [word_columns,
  // value_stride] of a block of keys; scores [pairs of keys, two, kWordRows], each pair in a place
  // of kWordTerms lines, in which their weights then stand [pairs of keys, kWordTerms, kWordRows];
  // the reach of rows in the block of keys and the mask [keys, kWordRows]; lines that are turned
  // into those.
  struct Words {
    uint32_t queries = 0, sums = 0, keys = 0, values = 0, scores = 0, low = 0, high = 0;
    uint32_t mask = 0, mask_lines = 0, lines = 0, query_lines = 0, query_columns = 0;
  } words;

  // Values of the block and of the tile that are being emitted.
  ops::Index batch_index;
  kir::Val group = nullptr, piece = nullptr, length = nullptr;
  kir::Val first_row = nullptr, row_count = nullptr, first_key = nullptr, tile_row = nullptr;
  Met met;  // of the block's keys and the tile
  std::vector<Row> rows_of_tile;

 private:
  void choose_sizes();
  bool fits_words() const;
  void add_scratch();
  void add_word_scratch();
  void name_dims();
  void narrow_reach(Row& row, kir::Val first, kir::Val last, kir::Val shift);
};

}  // namespace tenon::passes
