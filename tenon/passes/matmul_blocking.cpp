#include "tenon/passes/matmul_blocking.h"

#include <algorithm>
#include <optional>

#include "tenon/ops/packed_matmul.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

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
constexpr int64_t kCacheShare = 3;     // tiles of a block fill this part of the second cache
constexpr int64_t kOthersEnough = 16;  // tasks of other panels and batches: rows need not be split

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

DType accumulator_of(const ir::Node& matmul) {
  return ops::accumulation_type(matmul.operands[0].dtype(), matmul.operands[1].dtype());
}

}  // namespace

// Panels worked on together, so that few rows still keep the arithmetic units busy: a third panel
// slows reading from the third cache. Of memory that is read in place as many adjacent columns as
// can be.
int64_t panels_at_once(int64_t rows, bool wide, bool in_place) {
  int64_t vectors = wide ? 28 : 12;  // accumulators that fit, two a panel and row
  return std::clamp<int64_t>(vectors / (2 * rows), 1, in_place ? 12 : 2);
}

MatmulBlocking::MatmulBlocking(const MatmulEmission& emission, const MatmulIndex& at)
    : accumulator(accumulator_of(emission.matmul)),
      rows(at.rows()),
      depth(emission.matmul.operands[0].shape().back()),
      columns(emission.matmul.types[0].shape.back()),
      panels(emission.matmul.operands[1].shape()[at.batch().size()]),
      is_narrow(columns.is_static() && columns.value() <= kNarrowColumns),
      part_depth(ops::depth_of_part(depth, at.parts())) {
  const bool wide_blocks = emission.wide || emission.beside_wide;
  most_rows = wide_blocks ? kWideRows : kNarrowRows;
  const std::optional<int64_t> known = rows.static_value();
  if (known) {
    most_rows = *known > most_rows && *known <= 2 * most_rows + 2
                    ? std::min(most_rows, (*known + 1) / 2)
                    : choose_rows(*known, most_rows);
  }
  const bool few = known && *known <= most_rows;
  tile_rows = emission.wide ? most_rows : std::min(most_rows, kNarrowRows);
  together = few ? panels_at_once(most_rows, wide_blocks, !emission.packed_buffer) : 1;
  ahead = few ? kAheadFewRows : kAhead;
  cut_depth(few);
  cut_tasks(at);
}

void MatmulBlocking::cut_depth(bool few_rows) {
  depth_block = kDepthUnknown;
  if (const std::optional<int64_t> whole_depth = part_depth.static_value()) {
    const int64_t part = accumulator == DType::kF64 ? 2 : 1;
    int64_t whole = few_rows ? kDepthFewRows : kDepthUnblocked / part;
    int64_t limit = *whole_depth <= whole ? whole : few_rows ? kDepthFewRows : kDepthBlock / part;
    int64_t blocks = std::max<int64_t>(ceil_div(*whole_depth, limit), 1);
    depth_block = ceil_div(*whole_depth, blocks);
    if (blocks > 1) depth_block = ceil_div(depth_block, int64_t{16}) * 16;
    depth_block = std::max<int64_t>(depth_block, 1);
  }
  depth_blocks = dim_max(ceil_div(part_depth, Dim(depth_block)), Dim(1));
  stride = ceil_div(depth_block, int64_t{16}) * 16 + kDepthPadding;
}

// Tiles of a block stand in the second cache; there are enough blocks for every thread.
void MatmulBlocking::cut_tasks(const MatmulIndex& at) {
  const Dim threads = Dim(kir::kDimThreads, {.min = 1});
  const auto bytes = static_cast<int64_t>(size_of(accumulator));
  const Dim fit =
      floor_div(Dim(kir::kDimL2, {.min = 1}), Dim(kCacheShare * most_rows * stride * bytes));
  const Dim most = dim_max(dim_min(fit, Dim(kTilesPerBlock)), Dim(1));
  const Dim others = panels * at.tasks();
  block_rows = most * Dim(most_rows);
  if (const std::optional<int64_t> known = rows.static_value()) {
    const int64_t tiles = std::max<int64_t>(ceil_div(*known, most_rows), 1);
    Dim blocks = ceil_div(Dim(tiles), most);
    // Few panels do not make tasks enough.
    if (others.is_static() && others.value() > 0 && others.value() < kOthersEnough) {
      blocks = dim_max(blocks, dim_min(ceil_div(threads * Dim(2), others), Dim(tiles)));
    }
    block_rows = ceil_div(Dim(tiles), blocks) * Dim(most_rows);
  }
  const Dim tasks = others * ceil_div(rows, block_rows);
  const Dim wanted = threads * Dim(tasks_per_thread(rows.static_value()));
  block_panels = ceil_div(dim_max(ceil_div(tasks, wanted), Dim(1)), Dim(together)) * Dim(together);
  block_panels = dim_min(block_panels, dim_max(panels, Dim(1)));
}

}  // namespace tenon::passes
