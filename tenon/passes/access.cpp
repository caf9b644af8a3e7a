#include "tenon/passes/access.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "tenon/ops/ops.h"
#include "tenon/ops/packed_qmatmul.h"

namespace tenon::passes {
namespace {

using Kind = AxisSource::Kind;

bool named(const ir::Node& node, std::string_view op) { return node.op->name == op; }

// Right-aligned broadcasting of `operand` into `result`.
std::vector<AxisSource> broadcast_axes(const Shape& operand, const Shape& result) {
  std::vector<AxisSource> axes(operand.size());
  for (size_t i = 0; i < operand.size(); ++i) {
    const size_t at = result.size() - operand.size() + i;
    const bool unit = operand[i] == Dim(1) && result[at] != Dim(1);
    axes[i] = {unit ? Kind::kZero : Kind::kResult, unit ? 0 : static_cast<int>(at)};
  }
  return axes;
}

std::vector<AxisSource> reduction_axes(const ir::Node& node) {
  const std::vector<int> reduced = reduced_axes(node);
  const bool keep = node.attrs.b("keepdims");
  std::vector<AxisSource> axes;
  int result = 0;
  for (int i = 0; i < static_cast<int>(node.operands[0].shape().size()); ++i) {
    auto it = std::find(reduced.begin(), reduced.end(), i);
    if (it != reduced.end()) {
      axes.push_back({Kind::kReduced, static_cast<int>(it - reduced.begin())});
      if (keep) ++result;
    } else {
      axes.push_back({Kind::kResult, result++});
    }
  }
  return axes;
}

std::vector<AxisSource> unit_reshape_axes(const Shape& operand, const Shape& result) {
  std::vector<AxisSource> axes;
  size_t at = 0;
  for (const Dim& dim : operand) {
    if (dim == Dim(1)) {
      axes.push_back({Kind::kZero, 0});
      continue;
    }
    while (result[at] == Dim(1)) ++at;
    axes.push_back({Kind::kResult, static_cast<int>(at++)});
  }
  return axes;
}

// matmul: a[…, m, k], b[…, k, n]; a vector operand lacks its m or n.
std::vector<AxisSource> matmul_axes(const ir::Node& node, size_t operand) {
  const Shape& a = node.operands[0].shape();
  const Shape& b = node.operands[1].shape();
  const Shape& result = node.types[0].shape;
  const int matrix = (a.size() > 1 ? 1 : 0) + (b.size() > 1 ? 1 : 0);
  const int batch = static_cast<int>(result.size()) - matrix;
  const Shape& own = operand == 0 ? a : b;
  if (own.size() == 1) return {{Kind::kReduced, 0}};
  std::vector<AxisSource> axes;
  const int own_batch = static_cast<int>(own.size()) - 2;
  for (int i = 0; i < own_batch; ++i) {
    const int at = batch - own_batch + i;
    const bool unit = own[i] == Dim(1) && result[at] != Dim(1);
    axes.push_back({unit ? Kind::kZero : Kind::kResult, unit ? 0 : at});
  }
  const AxisSource common{Kind::kReduced, 0};
  if (operand == 0) {
    axes.push_back({Kind::kResult, batch});
    axes.push_back(common);
  } else {
    axes.push_back(common);
    axes.push_back({Kind::kResult, static_cast<int>(result.size()) - 1});
  }
  return axes;
}

// A packed operand is read whole for each row: only its batch dimensions follow the result.
std::vector<AxisSource> packed_axes(const ir::Node& node, size_t operand) {
  const Shape& own = node.operands[operand].shape();
  std::vector<AxisSource> axes(own.size());
  if (operand == 0) {
    for (size_t i = 0; i + 1 < own.size(); ++i) axes[i] = {Kind::kResult, static_cast<int>(i)};
    axes.back() = {Kind::kReduced, 0};
  }
  return axes;
}

// Ops whose elements are each read at most once although their index map is not spelled out here.
constexpr std::array<std::string_view, 11> kInjective = {
    "reshape",      "slice",  "concatenate", "pad",    "flip", "roll",
    "slice_update", "cumsum", "matmul_pack", "repeat", "sort"};

constexpr std::array<std::string_view, 36> kCostly = {
    "exp",   "exp2",  "expm1", "log",    "log2",         "log10",   "log1p", "sin",   "cos",
    "tan",   "asin",  "acos",  "atan",   "sinh",         "cosh",    "tanh",  "asinh", "acosh",
    "atanh", "erf",   "erfc",  "erfinv", "cbrt",         "sigmoid", "silu",  "gelu",  "pow",
    "hypot", "atan2", "fmod",  "mod",    "floor_divide", "rsqrt",   "sqrt",  "div",   "reciprocal"};

template <size_t N>
bool one_of(const std::array<std::string_view, N>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

std::vector<int> reduced_axes(const ir::Node& node) {
  const int rank = static_cast<int>(node.operands[0].shape().size());
  std::vector<int> axes;
  for (int64_t axis : node.attrs.ints("axes")) {
    axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

OperandAccess operand_access(const ir::Node& node, uint32_t result, size_t operand) {
  const Shape& own = node.operands[operand].shape();
  const Shape& shape = node.types[result].shape;
  if (node.op->is(ir::kElementwise) || named(node, "broadcast_to")) {
    return {broadcast_axes(own, shape)};
  }
  if (node.op->is(ir::kReduction)) return {reduction_axes(node)};
  if (named(node, "transpose")) {
    const std::vector<int64_t>& permutation = node.attrs.ints("perm");
    std::vector<AxisSource> axes(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      axes[static_cast<size_t>(permutation[i])] = {Kind::kResult, static_cast<int>(i)};
    }
    return {axes};
  }
  if (is_unit_reshape(node)) return {unit_reshape_axes(own, shape)};
  if (named(node, "matmul")) return {matmul_axes(node, operand), false};
  if (is_packed_product(node)) return {packed_axes(node, operand), false};
  return {std::vector<AxisSource>(own.size()), one_of(kInjective, node.op->name)};
}

Shape own_loops(const ir::Node& node) {
  Shape loops;
  if (node.op->is(ir::kReduction)) {
    for (int axis : reduced_axes(node)) {
      loops.push_back(node.operands[0].shape()[static_cast<size_t>(axis)]);
    }
  } else if (named(node, "matmul") || is_packed_product(node)) {
    loops.push_back(node.operands[0].shape().back());
  }
  return loops;
}

bool reduces_contiguous(const ir::Node& node) {
  if (!node.op->is(ir::kReduction)) return false;
  const Shape& shape = node.operands[0].shape();
  const std::vector<int> axes = reduced_axes(node);
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) return true;
    if (shape[static_cast<size_t>(i)] != Dim(1)) return false;
  }
  return false;
}

bool is_packed_product(const ir::Node& node) {
  return node.op == &ops::kMatmulPacked || node.op == &ops::kQmatmulExact ||
         node.op == &ops::kQmatmulInt8;
}

bool is_packing(const ir::Node& node) {
  return node.op == &ops::kMatmulPack || node.op == &ops::kQmatmulCodes ||
         node.op == &ops::kQmatmulScales;
}

bool is_unit_reshape(const ir::Node& node) {
  if (named(node, "squeeze") || named(node, "expand_dims")) return true;
  if (!named(node, "reshape")) return false;
  auto without_units = [](const Shape& shape) {
    Shape kept;
    for (const Dim& dim : shape) {
      if (dim != Dim(1)) kept.push_back(dim);
    }
    return kept;
  };
  return without_units(node.operands[0].shape()) == without_units(node.types[0].shape);
}

bool is_transposed(const ir::Value& value) {
  if (!named(*value.node, "transpose")) return false;
  const std::vector<int64_t>& perm = value.node->attrs.ints("perm");
  return perm.back() != static_cast<int64_t>(perm.size()) - 1;
}

int element_cost(const ir::Node& node) {
  if (node.op->is(ir::kMovement) || node.op->is(ir::kLeaf)) return 0;
  if (node.op->name.starts_with("random")) return 100;
  if (named(node, "sort")) return 60;
  if (named(node, "merge_sorted")) return 10;
  return one_of(kCostly, node.op->name) ? 12 : 1;
}

bool is_scalar_constant(const ir::Node& node) {
  return node.op == &ir::kConstant && node.attrs.get<Literal>("value").count() == 1 &&
         !is_complex(node.types[0].dtype);
}

bool is_memory_leaf(const ir::Node& node) {
  return node.op == &ir::kParameter || node.op == &ir::kConstantExternal ||
         (node.op == &ir::kConstant && !is_scalar_constant(node));
}

bool runs_on_host(const ir::Node& node) {
  if (node.op->is(ir::kStructural) || node.op == &ir::kConstant) return false;
  if (node.op->lower == nullptr && !node.op->is(ir::kAnchor)) return true;
  return ops::needs_host(node);
}

}  // namespace tenon::passes
