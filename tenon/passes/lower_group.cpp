#include "tenon/passes/lower_group.h"

#include <memory>

#include "tenon/base/error.h"
#include "tenon/ops/packed_qmatmul.h"
#include "tenon/passes/kernel_frame.h"
#include "tenon/passes/lower_attention.h"
#include "tenon/passes/lower_loops.h"
#include "tenon/passes/lower_matmul.h"
#include "tenon/passes/lower_qmatmul.h"
#include "tenon/passes/lower_round_rows.h"
#include "tenon/passes/lower_scan.h"
#include "tenon/passes/lower_scatter.h"
#include "tenon/passes/lower_slice_update.h"
#include "tenon/passes/lower_sort.h"

namespace tenon::passes {
namespace {

void lower_product(KernelFrame& frame, bool wide, bool beside_wide) {
  const GroupBody& body = frame.body();
  const DType wanted = body.anchor.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const ir::Node& product = *body.anchor.node;
  const bool dense = product.op == &ops::kMatmulPacked;
  MatmulEmission emission{
      product,
      frame.context(),
      [&](std::span<const kir::Val> index, kir::Val value, kir::Val inside) {
        frame.context().set_element(body.anchor,
                                    [value](std::span<const kir::Val>) { return value; });
        frame.store_roots(index, inside);
      },
      std::nullopt,
      frame.context().buffer_of(product.operands[product.op == &ops::kQmatmulInt8 ? 3 : 1]),
      std::nullopt,
      wide,
      beside_wide,
  };
  const ir::Node& right = *product.operands[1].node;
  if (right.op == &ops::kMatmulPack) {
    emission.right_buffer = frame.context().buffer_of(right.operands[0]);
  }
  for (size_t i = 0; i < body.roots.size() && !emission.partial_buffer; ++i) {
    if (body.roots[i].dtype() == wanted) emission.partial_buffer = frame.root_buffer(i);
  }
  return dense ? emit_matmul(emission) : emit_quantized_matmul(emission);
}

// The form for targets with few registers that stands beside one for many.
kir::Kernel narrow_form(const Group& group, const std::string& name) {
  KernelFrame frame(group, make_body(group, /*collapse=*/false), name);
  if (group.kind == Group::Kind::kAttention) {
    lower_attention(frame, /*wide=*/false);
  } else {
    lower_product(frame, /*wide=*/false, /*beside_wide=*/true);
  }
  return frame.finish();
}

}  // namespace

GroupKernel lower_group(const Group& group, const std::string& name, const InPlace& in_place,
                        Registers registers) {
  KernelFrame frame(group, make_body(group, group.kind == Group::Kind::kLoops), name, in_place);
  switch (group.kind) {
    case Group::Kind::kLoops: lower_loops(frame); break;
    case Group::Kind::kMatmul: lower_product(frame, registers != Registers::kFew, false); break;
    case Group::Kind::kRoundRows: lower_round_rows(frame); break;
    case Group::Kind::kAttention: lower_attention(frame, /*wide=*/true); break;
    case Group::Kind::kScan: lower_scan(frame); break;
    case Group::Kind::kSort: lower_sort(frame); break;
    case Group::Kind::kMerge: lower_merge(frame); break;
    case Group::Kind::kSliceUpdate: lower_slice_update(frame); break;
    case Group::Kind::kScatter: lower_scatter(frame); break;
    default: throw InternalError("internal: a group without a kernel");
  }
  GroupKernel result{frame.finish(), group.inputs};
  const bool in_tiles = group.kind == Group::Kind::kMatmul &&
                        group.anchor->op == &ops::kMatmulPacked &&
                        !ops::is_in_words(group.anchor->operands[1]);
  const bool has_forms =
      group.kind == Group::Kind::kAttention || (in_tiles && registers == Registers::kBoth);
  if (has_forms) {
    result.kernel.narrow = std::make_unique<kir::Kernel>(narrow_form(group, name));
    check_internal(result.kernel.narrow->dims == result.kernel.dims,
                   "both forms of a kernel take the same arguments");
  }
  for (size_t i = 0; i < group.roots.size(); ++i) {
    if (in_place.count(i) == 0) result.buffers.push_back(group.roots[i]);
  }
  return result;
}

}  // namespace tenon::passes
