#include "tenon/passes/matmul_index.h"

namespace tenon::passes {

using kir::Val;
using ops::Index;

MatmulIndex::MatmulIndex(kir::Builder& builder, const ir::Node& matmul)
    : b_(builder), matmul_(matmul), parts_(matmul.attrs.shape("parts").at(0)) {
  Shape shape = matmul.types[0].shape;
  if (in_parts()) shape.erase(shape.begin());
  const auto rank = static_cast<ptrdiff_t>(matmul.operands[1].shape().size()) - 3;
  batch_ = Shape(shape.begin(), shape.begin() + rank);
  row_shape_ = Shape(shape.begin() + rank, shape.end() - 1);
  rows_ = product(row_shape_);
}

Val MatmulIndex::set_task(Val number) {
  Val part = b_.i64(0);
  if (in_parts()) {
    const Dim batches = dim_max(product(batch_), Dim(1));
    part = part_ = b_.index_div(number, batches);
    number = b_.index_rem(number, batches);
  }
  index_ = ops::unflatten_index(b_, batch_, number);
  return part;
}

Index MatmulIndex::batch_in(const Shape& shape) const {
  Index index = index_;
  for (size_t i = 0; i < index.size(); ++i) {
    if (shape[i] == Dim(1)) index[i] = b_.i64(0);
  }
  return index;
}

void MatmulIndex::append_row(Index& index, Val row, Val last) const {
  const Index rows = ops::unflatten_index(b_, row_shape_, row);
  index.insert(index.end(), rows.begin(), rows.end());
  index.push_back(last);
}

Index MatmulIndex::left(Val row, Val k) const {
  Index index = batch_in(matmul_.operands[0].shape());
  append_row(index, row, k);
  return index;
}

Index MatmulIndex::right(Val panel, Val k, Val j) const {
  Index index = batch_in(matmul_.operands[1].shape());
  index.insert(index.end(), {panel, k, j});
  return index;
}

Index MatmulIndex::result(Val row, Val column) const {
  Index index = index_;
  if (part_ != nullptr) index.insert(index.begin(), part_);
  append_row(index, row, column);
  return index;
}

}  // namespace tenon::passes
