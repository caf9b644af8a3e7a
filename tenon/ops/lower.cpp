#include "tenon/ops/lower.h"

#include "tenon/ops/ops.h"
#include "tenon/ops/quantized.h"

namespace tenon::ops {

using kir::Builder;
using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;

Val LowerContext::bytes(const ir::Value& value, std::span<const Val> index, Type type) {
  Builder& b = builder();
  const int width = kir::bits(type);
  const Type word = width == 8 ? Type::kI8 : width == 16 ? Type::kI16 : Type::kI32;
  check_internal(width <= 32, "a composed value has at most four bytes");
  Index at(index.begin(), index.end());
  Val bits = b.constant_int(word, 0);
  for (int i = 0; i < width / 8; ++i) {
    at.back() = b.add(index.back(), b.i64(i));
    Val byte = element(value, at);
    if (width > 8) byte = b.convert(Op::kZExt, word, byte);
    bits = b.binary(Op::kOr, bits, b.binary(Op::kShl, byte, b.constant_int(word, 8 * i)));
  }
  return type == word ? bits : b.convert(Op::kBitcast, type, bits);
}

Index broadcast_index(Builder& b, const Shape& operand, const Shape& result,
                      std::span<const Val> index) {
  Index at;
  const size_t skip = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) {
    const bool one = operand[i].is_static() && operand[i].value() == 1;
    at.push_back(one ? b.i64(0) : index[skip + i]);
  }
  return at;
}

Val to_arith(Builder& b, Val value) {
  const bool half = value->type == Type::kF16 || value->type == Type::kBF16;
  return half ? b.convert(Op::kFExt, Type::kF32, value) : value;
}

Val from_arith(Builder& b, Val value, DType dtype) {
  return is_half(dtype) ? b.convert(Op::kFTrunc, kir::type_of(dtype), value) : value;
}

namespace {

Val nonzero(Builder& b, Val value, DType from) {
  const Type type = value->type;
  const Val zero = is_float(from) ? b.constant_float(type, 0) : b.constant_int(type, 0);
  return b.cmp(Pred::kNe, value, zero);
}

Val int_to_float(Builder& b, Val value, DType from, DType to) {
  if (from == DType::kBool) {
    return b.select(value, b.constant_float(kir::type_of(to), 1),
                    b.constant_float(kir::type_of(to), 0));
  }
  const Type arith = to == DType::kF64 ? Type::kF64 : Type::kF32;
  return from_arith(b, b.convert(is_signed(from) ? Op::kSToF : Op::kUToF, arith, value), to);
}

Val int_to_int(Builder& b, Val value, DType from, DType to) {
  const Type type = kir::type_of(to);
  const int have = kir::bits(value->type);
  const int want = kir::bits(type);
  if (want == have) return value;
  if (want < have) return b.convert(Op::kIntTrunc, type, value);
  return b.convert(is_signed(from) ? Op::kSExt : Op::kZExt, type, value);
}

Val float_to_float(Builder& b, Val value, DType to) {
  const Type type = kir::type_of(to);
  if (value->type == type) return value;
  const int have = kir::bits(value->type);
  const int want = kir::bits(type);
  if (have < want) return b.convert(Op::kFExt, type, value);
  if (have > want) return b.convert(Op::kFTrunc, type, value);
  return b.convert(Op::kFTrunc, type, to_arith(b, value));
}

}  // namespace

Val cast(Builder& b, Val value, DType from, DType to) {
  if (from == to) return value;
  if (to == DType::kBool) return nonzero(b, to_arith(b, value), from);
  if (is_float(from)) {
    if (is_float(to)) return float_to_float(b, value, to);
    const Op op = is_signed(to) ? Op::kFToS : Op::kFToU;
    return b.convert(op, kir::type_of(to), to_arith(b, value));
  }
  return is_float(to) ? int_to_float(b, value, from, to) : int_to_int(b, value, from, to);
}

Val flatten_index(Builder& b, const Shape& shape, std::span<const Val> index) {
  Val flat = b.i64(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    flat = b.add(b.mul(flat, b.dim(shape[i])), index[i]);
  }
  return flat;
}

Index unflatten_index(Builder& b, const Shape& shape, Val flat) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    if (i == 0) {
      index[i] = flat;
    } else {
      index[i] = b.index_rem(flat, shape[i]);
      flat = b.index_div(flat, shape[i]);
    }
  }
  return index;
}

bool needs_host(const ir::Node& node) {
  if (node.op->is(ir::kHost) || decodes_by_function(node)) return true;
  for (const ir::TensorType& type : node.types) {
    if (is_complex(type.dtype)) return true;
  }
  for (const ir::Value& operand : node.operands) {
    if (is_complex(operand.dtype())) return true;
  }
  return false;
}

}  // namespace tenon::ops
