// How an operation reads its operands, as far as fusion and index collapsing need to know.
#pragma once

#include <vector>

#include "tenon/ir/graph.h"
#include "tenon/ir/op_def.h"

namespace tenon::passes {

// Where the index of one operand dimension comes from.
struct AxisSource {
  enum class Kind : uint8_t {
    kResult,   // `axis` of the result's index
    kZero,     // always 0 (a broadcast dimension)
    kReduced,  // loop number `axis` that the op itself runs
    kAny,      // some function of the whole index
  };
  Kind kind = Kind::kAny;
  int axis = 0;
  bool operator==(const AxisSource&) const = default;
};

struct OperandAccess {
  std::vector<AxisSource> axes;  // one per operand dimension
  // False when one operand element may be asked for at several result indices although `axes` does
  // not show it (a gather).
  bool once = true;
};

// The access of operand `operand` for result `result` of `node`.
OperandAccess operand_access(const ir::Node& node, uint32_t result, size_t operand);
// Extents of the loops that `node` itself runs for one element, in nesting order: the reduced axes
// of a reduction, the common dimension of a matrix product; empty for everything else.
Shape own_loops(const ir::Node& node);
// True when the innermost of own_loops runs along the operand's last axis of more than one element.
bool reduces_contiguous(const ir::Node& node);
// The axes of a reduction, non-negative and sorted.
std::vector<int> reduced_axes(const ir::Node& node);

// A product whose right operand was packed, and what packs it.
bool is_packed_product(const ir::Node& node);
bool is_packing(const ir::Node& node);

// A reshape that only adds or drops dimensions of 1.
bool is_unit_reshape(const ir::Node& node);
// Whether the last axis of a value is not the last one in memory: keys [positions, depth] of an
// attention, transposed.
bool is_transposed(const ir::Value& value);
// Scalar operations of one element of `node` alone: 0 for movement, 1 for plain arithmetic, about
// the number of instructions for transcendental functions, divisions and random bits.
int element_cost(const ir::Node& node);

// A constant of one element: code holds it, no buffer.
bool is_scalar_constant(const ir::Node& node);
// Parameters, external data and constants with a buffer: in memory before the first step.
bool is_memory_leaf(const ir::Node& node);
// Runs through its reference evaluation: host ops, ops without a lowering, complex numbers.
bool runs_on_host(const ir::Node& node);

}  // namespace tenon::passes
