#include "tenon/passes/lower_transpose.h"

#include "tenon/ir/op_def.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

using kir::Val;

constexpr int64_t kBand = 32;      // rows that are turned side by side
constexpr int64_t kByteBand = 64;  // the same of bytes: a whole line of the result
constexpr int64_t kPiece = 128;    // columns of a band that one grid index turns

// Elements from one index of dimension `d` to the next.
Dim stride(const Shape& shape, size_t d) {
  return product(Shape(shape.begin() + static_cast<ptrdiff_t>(d) + 1, shape.end()));
}

}  // namespace

bool is_transpose(const KernelFrame& frame) {
  const std::vector<ir::Value>& roots = frame.body().roots;
  return roots.size() == 1 && roots[0].node->op->name == "transpose" &&
         frame.context().buffer_of(roots[0].node->operands[0]);
}

void lower_transpose(KernelFrame& frame, size_t across) {
  kir::Builder& b = frame.builder();
  const Shape& shape = frame.body().shape;
  const ir::Value& root = frame.body().roots[0];
  const ir::Value& operand = root.node->operands[0];
  const std::vector<int64_t>& perm = root.node->attrs.ints("perm");
  const auto along = static_cast<size_t>(perm.back());
  const Dim& length = shape[across];
  const Dim& height = shape.back();
  const int64_t band = size_of(root.dtype()) == 1 ? kByteBand : kBand;
  Shape outer(shape.begin(), shape.end() - 1);
  outer.erase(outer.begin() + static_cast<ptrdiff_t>(across));
  const Dim bands = ceil_div(height, Dim(band));
  const Dim pieces = ceil_div(length, Dim(kPiece));
  frame.grid_loop(product(outer) * bands * pieces, false, [&](Val g) {
    Val piece = b.index_rem(g, pieces);
    Val rest = b.index_div(g, pieces);
    Val first_row = b.mul(b.index_rem(rest, bands), b.i64(band));
    Val first_column = b.mul(piece, b.i64(kPiece));
    ops::Index index = ops::unflatten_index(b, outer, b.index_div(rest, bands));
    index.insert(index.begin() + static_cast<ptrdiff_t>(across), first_column);
    index.push_back(first_row);
    ops::Index at(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) at[static_cast<size_t>(perm[d])] = index[d];
    b.transpose(
        {frame.root_buffer(0), ops::flatten_index(b, shape, index), b.dim(stride(shape, across))},
        {*frame.context().buffer_of(operand), ops::flatten_index(b, operand.shape(), at),
         b.dim(stride(operand.shape(), along))},
        part_length(b, first_row, height, band), part_length(b, first_column, length, kPiece),
        frame.streams(0));
  });
}

}  // namespace tenon::passes
