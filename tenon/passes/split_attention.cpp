#include "tenon/passes/split_attention.h"

#include <limits>
#include <optional>
#include <vector>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/attention.h"
#include "tenon/ops/ops.h"

namespace tenon::passes {
namespace {

using ir::Value;

constexpr int64_t kFewRows = 6;
constexpr int64_t kFewHeads = 8;
constexpr int64_t kPart = 128;  // keys of a piece

bool splits(const ir::Node& node) {
  if (node.op != &ops::op::attention || node.attrs.i("part") != 0) return false;
  const Shape& k = node.operands[1].shape();
  const Shape& result = node.types[0].shape;
  const Dim& groups = *(k.end() - 3);
  const Dim rows = *(result.end() - 2) * floor_div(*(result.end() - 3), dim_max(groups, Dim(1)));
  const Dim matrices = product(Shape(result.begin(), result.end() - 3)) * groups;
  return rows.is_static() && rows.value() <= kFewRows && result.back().is_static() &&
         matrices.lower_bound() < kFewHeads && (k.end() - 2)->upper_bound() > kPart;
}

// The mean of the pieces by the sums of their weights, which stand beside a common maximum.
Value combine(const Value& pieces, DType dtype, const ir::LocationPtr& at) {
  const DType compute = pieces.dtype();
  const Dim columns = pieces.shape().back() - Dim(1);
  const auto cut = [&](const Dim& first, const Dim& end) {
    return ops::slice_axis(pieces, -1, {.start = first, .stop = end}, at);
  };
  const Value means = cut(0, columns);
  const Value logs = cut(columns, columns + Dim(1));
  const Value zero = ops::scalar(compute, 0, at);
  const Value none = ops::scalar(compute, -std::numeric_limits<double>::infinity(), at);
  const std::vector<int64_t> axis{-3};
  const Value top = ops::max_or_lowest(logs, axis, true, at);
  const Value base = ops::where(ops::equal(top, none, at), zero, top, at);
  const Value weights = ops::exp(ops::sub(logs, base, at), at);
  const Value total = ops::sum(weights, axis, false, at);
  const Value sums = ops::sum(ops::mul(means, weights, at), axis, false, at);
  const Value mean = ops::where(ops::equal(total, zero, at), zero, ops::div(sums, total, at), at);
  return ops::cast(mean, dtype, at);
}

}  // namespace

ir::GraphPtr split_attention(const ir::GraphPtr& graph) {
  return ir::rewrite(graph,
                     [](const ir::Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       if (!splits(node)) return std::nullopt;
                       ir::Attrs attrs = node.attrs;
                       attrs.set("part", kPart);
                       const Value pieces = ir::make(*node.op, {operands.begin(), operands.end()},
                                                     std::move(attrs), node.location);
                       return {{combine(pieces, node.types[0].dtype, node.location)}};
                     });
}

}  // namespace tenon::passes
