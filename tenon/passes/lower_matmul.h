// Matrix products as kernels: the GEMM family over packed right operands.
//
// One generator for all sizes: rows are worked off in tiles (14 rows on targets with 32 vector
// registers, 6 elsewhere), columns in panels of 32. A block of tiles of the left operand is copied
// and stands in a third of the second cache while the panels stream past it, each for all tiles of
// the block; the common dimension is blocked only where it is long (2048), so that sums mostly stay
// in registers. Products of few rows stream the panels once. Operands are pulled through the
// context, so casts of either operand and any elementwise epilogue fuse. After Goto and van de
// Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "tenon/ir/graph.h"
#include "tenon/kir/builder.h"
#include "tenon/ops/lower.h"

namespace tenon::passes {

struct MatmulEmission {
  const ir::Node& matmul;      // matmul_packed
  ops::LowerContext& context;  // materialised operands load; casts of them may be inlined
  // Emits what follows the product for its element at `index` (the product's own rank), whose value
  // is `product` in the product's dtype: the epilogue and the stores of the group's roots. Called
  // inside a vector loop over columns. `inside` is an i1 that must hold for memory to be touched,
  // or null when it always holds.
  std::function<void(std::span<const kir::Val> index, kir::Val product, kir::Val inside)> finish;
  // A written f32 (f64 for f64 products) buffer of the product's shape that `finish` overwrites
  // last and does not read: partial sums live there between blocks of the common dimension.
  std::optional<uint32_t> partial_buffer;
  // The buffer of the packed operand when it is in memory: panels are called into the first cache
  // ahead of their use.
  std::optional<uint32_t> packed_buffer;
  // The buffer of what a right operand that is read in place is packed from, where that is memory.
  std::optional<uint32_t> right_buffer;
  bool wide = true;  // the target has 32 vector registers
  // Without `wide`: the kernel stands beside a wide one and has its grid and scratch memory.
  bool beside_wide = false;
};

// Fills in the body, grid, scratch and cost of `emission.context.builder().kernel()`.
void emit_matmul(const MatmulEmission& emission);

}  // namespace tenon::passes
