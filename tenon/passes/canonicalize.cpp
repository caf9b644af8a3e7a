#include "tenon/passes/canonicalize.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"

namespace tenon::passes {
namespace {

using ir::Value;
namespace op = ops::op;

bool is(const Value& value, const ir::OpDef& def) { return value.node->op == &def; }
const Value& operand(const Value& value, size_t i = 0) { return value.node->operands[i]; }

bool is_reshape(const ir::Node& node) {
  return node.op == &op::reshape || node.op == &op::squeeze || node.op == &op::expand_dims;
}

std::optional<Value> reshape_form(const ir::Node& node, Value x) {
  const Shape& shape = node.types[0].shape;
  while (is_reshape(*x.node)) x = operand(x);
  if (x.shape() == shape) return x;
  if (node.op == &op::reshape && x == node.operands[0]) return std::nullopt;
  return ops::reshape(x, shape, node.location);
}

std::optional<Value> transpose_form(const ir::Node& node, Value x) {
  std::vector<int64_t> perm = node.attrs.ints("perm");
  while (is(x, op::transpose)) {
    const std::vector<int64_t>& inner = x.node->attrs.ints("perm");
    for (int64_t& axis : perm) axis = inner[static_cast<size_t>(axis)];
    x = operand(x);
  }
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  int64_t last = -1;
  bool order_kept = true;
  for (int64_t axis : perm) {
    if (x.shape()[static_cast<size_t>(axis)] == Dim(1)) continue;
    order_kept = order_kept && axis > last;
    last = axis;
  }
  if (order_kept) return ops::reshape(x, node.types[0].shape, node.location);
  if (x == node.operands[0]) return std::nullopt;
  return ops::transpose(x, perm, node.location);
}

std::optional<Value> broadcast_form(const ir::Node& node, Value x) {
  const Shape& shape = node.types[0].shape;
  while (is(x, op::broadcast_to)) x = operand(x);
  if (x.shape() == shape) return x;
  if (x == node.operands[0]) return std::nullopt;
  return ops::broadcast_to(x, shape, node.location);
}

// Every value of `from` is one of `to`, and casting on from there gives what casting directly
// gives: among floats and among integers.
bool exact_step(DType from, DType to) {
  if (is_float(from) && is_float(to)) {
    return from == to || to == DType::kF64 || (to == DType::kF32 && is_half(from));
  }
  if (!is_integer(from) || !is_integer(to)) return false;
  if (is_signed(from) == is_signed(to)) return size_of(from) <= size_of(to);
  return is_unsigned(from) && size_of(from) < size_of(to);
}

std::optional<Value> cast_form(const ir::Node& node, Value x) {
  const DType dtype = node.types[0].dtype;
  while (is(x, op::cast) && exact_step(operand(x).dtype(), x.dtype()) &&
         is_float(dtype) == is_float(x.dtype()) && is_integer(dtype) == is_integer(x.dtype())) {
    x = operand(x);
  }
  if (x.dtype() == dtype) return x;
  if (x == node.operands[0]) return std::nullopt;
  return ops::cast(x, dtype, node.location);
}

std::optional<Value> splat_form(const ir::Node& node) {
  const Literal& value = node.attrs.get<Literal>("value");
  const size_t size = size_of(value.dtype());
  if (value.count() < 2) return std::nullopt;
  for (int64_t i = 1; i < value.count(); ++i) {
    if (std::memcmp(value.data(), value.data() + static_cast<size_t>(i) * size, size) != 0) {
      return std::nullopt;
    }
  }
  Literal one(value.dtype(), {});
  std::memcpy(one.mutable_data(), value.data(), size);
  return ops::broadcast_to(ir::make_constant(one, node.location), node.types[0].shape,
                           node.location);
}

// The node over operands without needless broadcasts and with its constant right.
std::optional<Value> elementwise_form(const ir::Node& node, std::span<const Value> operands) {
  std::vector<Value> next(operands.begin(), operands.end());
  bool changed = false;
  for (Value& value : next) {
    if (!is(value, op::broadcast_to)) continue;
    const Value kept = value;
    value = operand(value);
    size_t rank = 0;
    bool covered = true;
    for (const Value& other : next) rank = std::max(rank, other.shape().size());
    covered = rank == node.types[0].shape.size();
    for (size_t i = 0; covered && i < rank; ++i) {
      covered = std::any_of(next.begin(), next.end(), [&](const Value& other) {
        const Shape& shape = other.shape();
        return i + shape.size() >= rank && shape[i + shape.size() - rank] == node.types[0].shape[i];
      });
    }
    if (covered) {
      changed = true;
    } else {
      value = kept;
    }
  }
  if (node.op->is(ir::kCommutative) && next.size() == 2 && is(next[0], ir::kConstant) &&
      !is(next[1], ir::kConstant)) {
    std::swap(next[0], next[1]);
    changed = true;
  }
  if (!changed) return std::nullopt;
  return ir::make(*node.op, std::move(next), node.attrs, node.location);
}

std::optional<Value> canonical_form(const ir::Node& node, std::span<const Value> operands) {
  if (is_reshape(node)) return reshape_form(node, operands[0]);
  if (node.op == &op::transpose) return transpose_form(node, operands[0]);
  if (node.op == &op::broadcast_to) return broadcast_form(node, operands[0]);
  if (node.op == &op::cast) return cast_form(node, operands[0]);
  if (node.op == &ir::kConstant) return splat_form(node);
  if (node.op->is(ir::kElementwise)) return elementwise_form(node, operands);
  return std::nullopt;
}

}  // namespace

ir::GraphPtr canonicalize(const ir::GraphPtr& graph) {
  return ir::rewrite(graph,
                     [](const ir::Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       // The forms compare operands with the node's own: rebuild it on new ones.
                       if (!std::equal(operands.begin(), operands.end(), node.operands.begin())) {
                         ir::NodePtr next =
                             ir::make_node(*node.op, {operands.begin(), operands.end()}, node.attrs,
                                           node.location);
                         if (auto value = canonical_form(*next, operands)) return {{*value}};
                         std::vector<Value> results;
                         for (uint32_t i = 0; i < next->types.size(); ++i) {
                           results.push_back({next, i});
                         }
                         return results;
                       }
                       if (auto value = canonical_form(node, operands)) return {{*value}};
                       return std::nullopt;
                     });
}

}  // namespace tenon::passes
