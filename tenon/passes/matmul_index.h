// Indices of a packed product: a flat row, a column, a panel become those of operands and result.
#pragma once

#include "tenon/ir/graph.h"
#include "tenon/kir/builder.h"
#include "tenon/ops/lower.h"

namespace tenon::passes {

class MatmulIndex {
 public:
  // `matmul` is a matmul_packed.
  MatmulIndex(kir::Builder& builder, const ir::Node& matmul);

  const Shape& batch() const { return batch_; }  // dimensions that the packed operand has as well
  const Dim& rows() const { return rows_; }      // of one batch, flat
  const Dim& parts() const { return parts_; }    // of the common dimension
  bool in_parts() const { return parts_ != Dim(1); }
  // Parts times batches, and the choice of those that the indices below belong to, by their flat
  // number; returns the part.
  Dim tasks() const { return parts_ * product(batch_); }
  kir::Val set_task(kir::Val number);

  ops::Index left(kir::Val row, kir::Val k) const;
  ops::Index right(kir::Val panel, kir::Val k, kir::Val j) const;
  ops::Index result(kir::Val row, kir::Val column) const;

 private:
  // Batch dimensions of size 1 in `shape` are read at 0.
  ops::Index batch_in(const Shape& shape) const;
  void append_row(ops::Index& index, kir::Val row, kir::Val last) const;

  kir::Builder& b_;
  const ir::Node& matmul_;
  Shape batch_, row_shape_;
  Dim rows_;
  Dim parts_;
  ops::Index index_;
  kir::Val part_ = nullptr;
};

}  // namespace tenon::passes
