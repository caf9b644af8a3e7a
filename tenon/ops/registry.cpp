#include "tenon/ops/registry.h"

#include <mutex>

#include "tenon/ops/attention.h"
#include "tenon/ops/packed_qmatmul.h"

namespace tenon::ops {

void register_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (auto family :
         {elementwise_ops, choice_ops, leaf_ops, reduce_ops, argreduce_ops, matmul_ops,
          movement_ops, reshape_ops, slicing_ops, slice_update_ops, joining_ops, indexing_ops,
          scatter_ops, scan_ops, sort_ops, random_ops, quantized_ops}) {
      for (const ir::OpDef* op : family()) ir::register_op(op);
    }
    for (const ir::OpDef* op : {&op::attention, &kMatmulPack, &kMatmulPacked, &kQmatmulCodes,
                                &kQmatmulScales, &kQmatmulExact, &kQmatmulInt8, &kRoundRows})
      ir::register_op(op);
  });
}

}  // namespace tenon::ops
