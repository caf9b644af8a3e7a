#include "tenon/ops/position.h"

#include "tenon/base/check_code.h"
#include "tenon/base/error.h"
#include "tenon/ops/lower.h"

namespace tenon::ops {

using kir::Op;
using kir::Pred;
using kir::Val;

void check_indices(std::string_view op, const ir::TensorType& indices) {
  if (is_integer(indices.dtype)) return;
  throw TypeError(fmt::format("{}: indices must be integers, got {}", op, name(indices.dtype)),
                  {.label = fmt::format("{}_c1", op)});
}

void check_has_elements(std::string_view op, const Shape& shape, size_t axis, const Dim& indexed) {
  if (shape[axis] != Dim(0) || !indexed.is_static() || indexed.value() == 0) return;
  throw IndexError(fmt::format("{}: axis {} of {} has no elements, {} indices were given", op, axis,
                               str(shape), indexed.str()),
                   {.label = fmt::format("{}_c2", op)});
}

int64_t position_in(std::string_view op, const Literal& indices, int64_t k, int64_t dim,
                    int64_t axis) {
  const int64_t i = indices.get_int(k);
  const bool huge = i < 0 && is_unsigned(indices.dtype());  // a u64 from 2^63 on
  if (!huge && i >= -dim && i < dim) return i < 0 ? i + dim : i;
  const std::string text = huge ? std::to_string(static_cast<uint64_t>(i)) : std::to_string(i);
  throw IndexError(
      fmt::format("{}: index {} is outside axis {} of {} elements", op, text, axis, dim),
      {.label = fmt::format("{}_index", op)});
}

Val emit_from_front(kir::Builder& b, Val index, DType dtype, const Dim& dim) {
  const Val n = b.dim(dim);
  const Val i = cast(b, index, dtype, DType::kI64);
  return is_unsigned(dtype) ? i : b.select(b.cmp(Pred::kSLt, i, b.i64(0)), b.add(i, n), i);
}

Position emit_position(kir::Builder& b, Val index, DType dtype, const Dim& dim) {
  const Val n = b.dim(dim);
  const Val zero = b.i64(0);
  const Val from_front = emit_from_front(b, index, dtype, dim);
  const Val inside =
      b.binary(Op::kAnd, b.cmp(Pred::kSGe, from_front, zero), b.cmp(Pred::kSLt, from_front, n));
  b.check(inside, kCheckIndexOutOfRange);
  const Val capped = b.binary(Op::kSMin, from_front, b.sub(n, b.i64(1)));
  const Val at = b.binary(Op::kSMax, capped, zero);
  b.set_bound(at, dim);
  return {at, inside};
}

}  // namespace tenon::ops
