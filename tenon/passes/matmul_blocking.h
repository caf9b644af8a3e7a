// How a product of floats is cut into blocks: rows of a tile, tiles and panels of a task, the
// common dimension.
#pragma once

#include <cstdint>

#include "tenon/base/dim.h"
#include "tenon/passes/lower_matmul.h"
#include "tenon/passes/matmul_index.h"

namespace tenon::passes {

inline constexpr int64_t kNarrowColumns = 16;  // no more columns than these: half a panel is enough

// Panels worked on together for so many rows; `in_place`: of an operand that is not packed.
int64_t panels_at_once(int64_t rows, bool wide, bool in_place);

struct MatmulBlocking {
  MatmulBlocking(const MatmulEmission& emission, const MatmulIndex& at);

  DType accumulator;
  Dim rows, depth, columns, panels;  // of one batch
  bool is_narrow;                    // one panel, of which the rest is empty
  // Rows that blocks are made of, rows of a tile, panels worked on together.
  int64_t most_rows = 0, tile_rows = 0, together = 1;
  Dim part_depth;           // of the common dimension
  int64_t depth_block = 0;  // of a part
  Dim depth_blocks;
  int64_t stride = 0;            // between rows of a copied tile, in elements
  int64_t ahead = 0;             // rows of a panel called in before their turn
  Dim block_rows, block_panels;  // of a task

 private:
  void cut_depth(bool few_rows);
  void cut_tasks(const MatmulIndex& at);
};

}  // namespace tenon::passes
