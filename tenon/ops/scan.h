// cumsum, cumprod, cummax and cummin: what their evaluation and their kernels share.
#pragma once

#include "tenon/ir/op_def.h"
#include "tenon/kir/builder.h"

namespace tenon::ops {

enum class ScanKind : uint8_t { kSum, kProd, kMax, kMin };

bool is_scan(const ir::Node& node);
ScanKind scan_kind(const ir::Node& node);  // of such a node
// What a scan of elements of `dtype` is held in: sums and products in f64, i64 or u64, extremes of
// f16 and bf16 in f32.
DType scan_dtype(ScanKind kind, DType dtype);
// What stands before the first element of `dtype`, in that type.
kir::Val emit_scan_start(kir::Builder& b, ScanKind kind, DType dtype);
// After an element of the type `acc`.
kir::Val emit_scan_step(kir::Builder& b, ScanKind kind, DType acc, kir::Val before,
                        kir::Val element);

}  // namespace tenon::ops
