#include "tenon/passes/split_sorts.h"

#include <cstring>
#include <optional>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/order.h"

namespace tenon::passes {
namespace {

using ir::Value;
namespace op = ops::op;

constexpr int64_t kFewRows = 16;
constexpr int64_t kLongRow = 65536;
constexpr int64_t kPieceBytes = int64_t{2} << 20;  // what sorts from a second cache
constexpr int64_t kMostPieces = 8;

bool splits(const ir::Node& node) {
  if (node.op != &op::sort) return false;
  const Shape& shape = node.types[0].shape;
  const Dim rows = product(Shape(shape.begin(), shape.end() - 1));
  return rows.is_static() && rows.value() < kFewRows && shape.back().upper_bound() >= kLongRow;
}

// A power of two; a size that is not known counts as a long row.
int64_t pieces_of(const ir::Node& node) {
  const Dim& length = node.types[0].shape.back();
  const int64_t elements = length.is_static() ? length.value() : kLongRow;
  const int64_t bytes = elements * static_cast<int64_t>(size_of(node.types[0].dtype));
  int64_t pieces = 2;
  while (pieces < kMostPieces && bytes > pieces * kPieceBytes) pieces *= 2;
  return pieces;
}

Value last_element(const ir::Node& node) {
  const DType dtype = node.types[0].dtype;
  Literal literal(dtype, {});
  const uint64_t bits = ops::last_bits(ops::order_of(dtype, node.attrs));
  std::memcpy(literal.mutable_data(), &bits, size_of(dtype));
  return ir::make_constant(std::move(literal), node.location);
}

// Elements that fill the last piece come after all others, so they are what merging leaves out.
Value split(const ir::Node& node, Value x) {
  const Shape whole = x.shape();
  const Dim& length = whole.back();
  int64_t pieces = pieces_of(node);
  Dim piece = floor_div(length + Dim(pieces - 1), Dim(pieces));
  const Dim missing = piece * Dim(pieces) - length;
  if (!(missing == Dim(0))) {
    Shape after(whole.size(), Dim(0));
    after.back() = missing;
    x = ops::pad(x, Shape(whole.size(), Dim(0)), after, last_element(node), node.location);
  }
  Shape shape(whole.begin(), whole.end() - 1);
  shape.insert(shape.end(), {Dim(pieces), piece});
  x = ir::make(op::sort, {ops::reshape(x, shape, node.location)}, node.attrs, node.location);
  for (; pieces > 1; pieces /= 2) {
    Shape pairs(whole.begin(), whole.end() - 1);
    pairs.insert(pairs.end(), {Dim(pieces / 2), Dim(2), piece});
    piece = pieces == 2 ? length : piece * Dim(2);
    x = ir::make(op::merge_sorted, {ops::reshape(x, pairs, node.location)},
                 {{"size", Shape{piece}},
                  {"descending", node.attrs.b("descending")},
                  {"from_bit", node.attrs.i("from_bit")}},
                 node.location);
  }
  return ops::reshape(x, whole, node.location);
}

}  // namespace

ir::GraphPtr split_sorts(const ir::GraphPtr& graph) {
  return ir::rewrite(graph,
                     [](const ir::Node& node,
                        std::span<const Value> operands) -> std::optional<std::vector<Value>> {
                       if (!splits(node)) return std::nullopt;
                       return {{split(node, operands[0])}};
                     });
}

}  // namespace tenon::passes
