// The pull model of lowering: an op's `lower` emits the code of one element of its result and asks
// the context for the operand elements it needs. Whatever can be written like this fuses with its
// producers and consumers without further rules.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tenon/ir/graph.h"
#include "tenon/kir/builder.h"

namespace tenon::ops {

using Index = std::vector<kir::Val>;

class LowerContext {
 public:
  virtual ~LowerContext() = default;
  virtual kir::Builder& builder() = 0;
  // The element of `value` at `index` (one i64 per dimension), in its storage type (f16 and bf16
  // as such, bool as i1). Loaded when `value` is materialised, else computed by its own `lower`;
  // remembered while the blocks that the index needs are open.
  virtual kir::Val element(const ir::Value& value, std::span<const kir::Val> index) = 0;
  // As element(), without touching memory where `predicate` (i1) is false; the result there is
  // any value. Nests: an inner predicate is and-ed with an outer one.
  virtual kir::Val element_if(const ir::Value& value, std::span<const kir::Val> index,
                              kir::Val predicate) = 0;
  // A value of `type`, little-endian, that begins at the element of `value` (u8) at `index` and
  // ends in the same row. Composed of elements unless the context loads it at once.
  virtual kir::Val bytes(const ir::Value& value, std::span<const kir::Val> index, kir::Type type);
  // Depth of the block that defines the open predicate, 0 without one. A loop that reads elements
  // is not placed outside it.
  virtual int predicate_depth() { return 0; }
};

// --- for the families' lower functions ---

// Operand index of a broadcast operand: right-aligned, 0 where the operand's dimension is 1.
Index broadcast_index(kir::Builder& b, const Shape& operand, const Shape& result,
                      std::span<const kir::Val> index);
// Storage → arithmetic type (f16, bf16 → f32; others as they are) and back, rounding once.
kir::Val to_arith(kir::Builder& b, kir::Val value);
kir::Val from_arith(kir::Builder& b, kir::Val value, DType dtype);
// NumPy's astype between any two dtypes on stored elements.
kir::Val cast(kir::Builder& b, kir::Val value, DType from, DType to);
// Row-major flat index of `index` in `shape`, and back.
kir::Val flatten_index(kir::Builder& b, const Shape& shape, std::span<const kir::Val> index);
Index unflatten_index(kir::Builder& b, const Shape& shape, kir::Val flat);

}  // namespace tenon::ops
