#include "tenon/passes/attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/passes/access.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Op;
using kir::Val;
using ops::Index;

constexpr int64_t kFewRows = 6;  // rows that take keys as they stand
constexpr int64_t kTasksPerThread = 4;
constexpr int64_t kMostBlockRows = 2048;  // whose sums stay in the second cache

Dim round_up(const Dim& a, int64_t to) { return ceil_div(a, Dim(to)) * Dim(to); }

}  // namespace

AttentionKernel::AttentionKernel(KernelFrame& kernel_frame, bool wide)
    : frame(kernel_frame),
      b(frame.builder()),
      node(*frame.body().anchor.node),
      parts(node),
      type(kir::type_of(parts.compute)),
      is_wide(wide) {
  const Shape& q = parts.q.shape();
  const Shape& result = node.types[0].shape;
  batch = Shape(result.begin(), result.end() - (parts.part == 0 ? 3 : 4));
  groups = *(parts.k.shape().end() - 3);
  const Dim& heads = *(q.end() - 3);
  per_group = groups == heads || !heads.is_static() ? 1 : heads.value() / groups.value();
  queries = *(q.end() - 2);
  depth = q.back();
  keys = *(parts.k.shape().end() - 2);
  columns = parts.v.shape().back();
  rows = queries * Dim(per_group);
  if (parts.part > 0) pieces = *(result.end() - 3);
  choose_sizes();
  add_scratch();
  if (has_words) add_word_scratch();
  name_dims();
}

// Products of words add in f32, as the others do. Numbers of few rows are not worth the packing.
bool AttentionKernel::fits_words() const {
  const bool halves = parts.q.dtype() == DType::kBF16 && parts.k.dtype() == DType::kBF16 &&
                      parts.v.dtype() == DType::kBF16;
  const bool known = depth.is_static() && depth.value() > 0 && columns.is_static() &&
                     columns.value() > 0 && std::isfinite(parts.scale) && parts.scale != 0;
  return halves && known && !few && parts.part == 0;
}

// All that the grid and the scratch memory follow from is the same for all targets.
void AttentionKernel::choose_sizes() {
  int64_t tile_rows = kTileRows;
  if (std::optional<int64_t> known = rows.static_value()) {
    const int64_t tiles = std::max<int64_t>(ceil_div(*known, tile_rows), 1);
    tile_rows = std::max<int64_t>(ceil_div(*known, tiles), 1);
    few = *known <= kFewRows;
  }
  if (!few) tile_rows += tile_rows % 2;
  tile = is_wide || few ? tile_rows : tile_rows / 2;
  interleave = is_wide && few ? 4 : 2;
  has_words = fits_words();
  if (has_words) tile_rows = kWordRows;
  if (in_words()) {
    tile = kWordRows;
    key_block = kWordKeys;
  }
  transposed = is_transposed(parts.k);
  const Dim tiles = dim_max(ceil_div(rows, Dim(tile_rows)), Dim(1));
  const Dim threads = Dim(kir::kDimThreads, {.min = 1});
  const Dim tasks = tiles * product(batch) * groups * pieces;
  Dim together = dim_max(ceil_div(tasks, threads * Dim(kTasksPerThread)), Dim(1));
  together = dim_min(together, dim_min(tiles, Dim(kMostBlockRows / tile_rows)));
  block_rows = together * Dim(tile_rows);
  depth_stride = round_up(depth, 16) + Dim(kPadding);
  const bool whole = columns.is_static() && columns.value() % kWidePanel == 0;
  panel = few && whole ? kWidePanel : kPanel;
  sums_stride = round_up(columns, panel) + Dim(kPadding);
  depth_words = has_words ? ceil_div(depth.value(), 32) * 16 : 0;
  word_columns = has_words ? ceil_div(columns.value(), 32) * 32 : 0;
  value_stride = kWordKeys / 2 + kPadding;
  bounded = parts.causal || parts.window > 0 || parts.length.has_value() || parts.part > 0;
}

void AttentionKernel::add_scratch() {
  const DType dtype = parts.compute;
  // The last tile may end after the block.
  const Dim most = block_rows + Dim(kTileRows);
  query = b.add_scratch("query", dtype, most * depth_stride);
  sums = b.add_scratch("sums", dtype, most * sums_stride);
  top = b.add_scratch("top", dtype, most);
  totals = b.add_scratch("totals", dtype, most * Dim(kPanel));
  scores = b.add_scratch("scores", dtype, Dim(kTileRows * kScoreStride));
  shrink = b.add_scratch("shrink", dtype, Dim(kTileRows));
  maxima = b.add_scratch("maxima", dtype, Dim(kPanel));
  raises = b.add_scratch("raises", DType::kBool, Dim(1));
  if (packs_values()) values = b.add_scratch("values", dtype, Dim(kKeyBlock) * sums_stride);
  if (!packs_keys()) return;
  packed = b.add_scratch("keys", dtype, depth * Dim(kKeyBlock));
  if (!transposed) lines = b.add_scratch("lines", dtype, depth_stride * Dim(kPanel));
}

void AttentionKernel::add_word_scratch() {
  const Dim pairs = Dim(kWordKeys / 2);
  const int64_t elements = 2 * depth_words;
  words.queries = b.add_scratch("query words", DType::kI32, block_rows * Dim(depth_words));
  words.sums = b.add_scratch("turned sums", DType::kF32, block_rows * Dim(word_columns));
  words.keys = b.add_scratch("key words", DType::kBF16, Dim(kWordKeys * elements));
  words.values = b.add_scratch("value words", DType::kBF16, Dim(word_columns * 2 * value_stride));
  words.scores = b.add_scratch("word scores", DType::kF32, pairs * Dim(kPairStride));
  words.low = b.add_scratch("low", DType::kI32, Dim(kWordRows));
  words.high = b.add_scratch("high", DType::kI32, Dim(kWordRows));
  if (parts.mask) {
    const DType of_mask = mask_in_pairs() ? DType::kI16 : DType::kF32;
    if (!mask_is_shared() && !mask_in_pairs()) {
      words.mask = b.add_scratch("mask", DType::kF32, Dim(kWordKeys * kWordRows));
    }
    words.mask_lines = b.add_scratch("mask lines", of_mask, Dim(kWordRows * kWordKeys));
  }
  const int64_t longest = std::max(elements, word_columns);
  words.lines = b.add_scratch("lines of halves", DType::kBF16, Dim(kWordKeys * longest));
  words.query_lines = b.add_scratch("query lines", DType::kI32, Dim(kWordRows * elements));
  words.query_columns = b.add_scratch("query columns", DType::kI32, Dim(kWordRows * elements));
}

bool AttentionKernel::mask_is_shared() const {
  const Shape& mask = parts.mask->shape();
  const auto repeats = [&](size_t k) {
    return k >= mask.size() || *(mask.rbegin() + static_cast<int64_t>(k)) == Dim(1);
  };
  return repeats(1) && (repeats(2) || per_group == 1);
}

bool AttentionKernel::mask_in_pairs() const {
  const DType dtype = parts.mask->dtype();
  return !mask_is_shared() && (dtype == DType::kBool || dtype == DType::kBF16);
}

// All forms of a kernel take the same arguments: the dimensions that one of them may use.
void AttentionKernel::name_dims() {
  for (const Dim& dim : {queries, keys, rows, block_rows, groups, pieces}) b.dim(dim);
  for (const ir::Value& value : node.operands) {
    for (const Dim& dim : value.shape()) b.dim(dim);
  }
}

Val AttentionKernel::lowest() { return number(-std::numeric_limits<double>::infinity()); }

Val AttentionKernel::ceil_of(Val x, int64_t divisor) {
  return b.binary(Op::kSDiv, b.add(x, b.i64(divisor - 1)), b.i64(divisor));
}

Index AttentionKernel::matrix_index(const ir::Value& value, Val head) {
  Index index = batch_index;
  for (size_t i = 0; i < index.size(); ++i) {
    if (value.shape()[i] == Dim(1)) index[i] = b.i64(0);
  }
  index.push_back(head);
  return index;
}

Val AttentionKernel::shared_element(const ir::Value& value, Val key, Val at, Val inside) {
  Index index = matrix_index(value, group);
  index.insert(index.end(), {key, at});
  Val element = inside == nullptr ? frame.context().element(value, index)
                                  : frame.context().element_if(value, index, inside);
  return ops::cast(b, element, value.dtype(), parts.compute);
}

AttentionKernel::Row AttentionKernel::row_at(Val row) {
  Row result{group, row};
  if (per_group > 1) {
    b.set_bound(row, rows);
    result.query = b.index_rem(row, queries);
    result.head = b.add(b.mul(group, b.i64(per_group)), b.index_div(row, queries));
  }
  set_reach(result, result.query, result.query);
  return result;
}

void AttentionKernel::set_reach(Row& row, Val first, Val last) {
  row.low = b.i64(0);
  row.high = length;
  Val shift = b.sub(length, b.dim(queries));
  if (parts.causal) row.high = at_most(length, b.add(b.add(last, shift), b.i64(1)));
  if (parts.window > 0) narrow_reach(row, first, last, shift);
  if (parts.part == 0) return;
  Val start = b.mul(piece, b.i64(parts.part));
  row.low = at_least(row.low, start);
  row.high = at_most(row.high, b.add(start, b.i64(parts.part)));
}

void AttentionKernel::narrow_reach(Row& row, Val first, Val last, Val shift) {
  Val window = b.i64(parts.window);
  row.low = at_least(b.i64(0), b.add(b.sub(b.add(first, shift), window), b.i64(1)));
  if (!parts.causal) row.high = at_most(length, b.add(b.add(last, shift), window));
}

AttentionKernel::Met AttentionKernel::meet(Val low, Val high) {
  low = at_least(b.sub(low, first_key), b.i64(0));
  Val size = b.i64(kPanel);
  Met result;
  result.first_panel = b.binary(Op::kSDiv, low, size);
  result.from = b.mul(result.first_panel, size);
  result.count = at_most(b.sub(high, first_key), b.i64(key_block));
  result.panels = ceil_of(at_least(result.count, b.i64(0)), kPanel);
  result.end = b.mul(result.panels, size);
  result.any = b.cmp(kir::Pred::kSLt, result.from, result.count);
  return result;
}

Val AttentionKernel::clamped_row(Val r) {
  return b.add(first_row, at_most(r, b.sub(row_count, b.i64(1))));
}

}  // namespace tenon::passes
