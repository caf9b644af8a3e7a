#include "tenon/ops/order.h"

#include <cstring>

namespace tenon::ops {
namespace {

using kir::Op;
using kir::Type;
using kir::Val;

uint64_t sign_of(int width) { return uint64_t{1} << (width - 1); }

// The bits of +infinity: everything above is NaN.
uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 0x7c00;
    case DType::kBF16: return 0x7f80;
    case DType::kF32: return 0x7f800000;
    default: return 0x7ff0000000000000;
  }
}

// The quiet NaN without sign: the highest bit below the exponent is set.
uint64_t nan_bits(DType dtype) {
  const int fraction = dtype == DType::kF16    ? 10
                       : dtype == DType::kBF16 ? 7
                       : dtype == DType::kF32  ? 23
                                               : 52;
  return infinity_bits(dtype) | uint64_t{1} << (fraction - 1);
}

Val bits_constant(kir::Builder& b, Type type, uint64_t bits) {
  return b.constant_int(type, static_cast<int64_t>(bits));
}

}  // namespace

int element_bits(DType dtype) { return 8 * static_cast<int>(size_of(dtype)); }

DType bits_dtype(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::kU8;
    case 2: return DType::kU16;
    case 4: return DType::kU32;
    default: return DType::kU64;
  }
}

DType key_dtype(DType dtype) { return size_of(dtype) == 8 ? DType::kU64 : DType::kU32; }

uint64_t element_bits_of(const Literal& x, int64_t i) {
  const size_t size = size_of(x.dtype());
  uint64_t bits = 0;
  std::memcpy(&bits, x.data() + static_cast<size_t>(i) * size, size);
  if (!is_float(x.dtype())) return bits;
  const uint64_t magnitude = bits & (sign_of(element_bits(x.dtype())) - 1);
  return magnitude > infinity_bits(x.dtype()) ? nan_bits(x.dtype()) : bits;
}

Order order_of(DType dtype, const ir::Attrs& attrs) {
  return {dtype, attrs.b("descending"), attrs.i("from_bit")};
}

uint64_t order_key(uint64_t bits, const Order& order) {
  const uint64_t sign = sign_of(element_bits(order.dtype));
  uint64_t key = bits;
  if (is_float(order.dtype)) {
    const uint64_t magnitude = bits & (sign - 1);
    key = (bits & sign) != 0 ? sign - magnitude : sign + magnitude;
  } else if (order.dtype != DType::kBool && !is_unsigned(order.dtype)) {
    key = bits ^ sign;
  }
  if (order.descending) key = size_of(order.dtype) == 8 ? ~key : static_cast<uint32_t>(~key);
  return key >> order.from_bit;
}

uint64_t last_bits(const Order& order) {
  const auto [dtype, descending, from_bit] = order;
  const uint64_t sign = sign_of(element_bits(dtype));
  const uint64_t all = sign - 1 + sign;
  if (dtype == DType::kBool) return descending ? 0 : 1;
  if (is_float(dtype)) return descending ? sign | infinity_bits(dtype) : nan_bits(dtype);
  if (is_unsigned(dtype)) return descending ? 0 : all;
  return descending ? sign : sign - 1;
}

Val bits_of_element(kir::Builder& b, Val element, DType dtype) {
  if (dtype == DType::kBool) return b.convert(Op::kZExt, Type::kI8, element);
  if (!is_float(dtype)) return element;
  const Type type = kir::type_of(bits_dtype(dtype));
  const Val bits = b.convert(Op::kBitcast, type, element);
  const Val magnitude =
      b.binary(Op::kAnd, bits, bits_constant(b, type, sign_of(element_bits(dtype)) - 1));
  const Val nan = b.cmp(kir::Pred::kUGt, magnitude, bits_constant(b, type, infinity_bits(dtype)));
  return b.select(nan, bits_constant(b, type, nan_bits(dtype)), bits);
}

Val element_of_bits(kir::Builder& b, Val bits, DType dtype) {
  if (dtype == DType::kBool) return b.cmp(kir::Pred::kNe, bits, b.constant_int(Type::kI8, 0));
  return is_float(dtype) ? b.convert(Op::kBitcast, kir::type_of(dtype), bits) : bits;
}

namespace {

// A key of the element's width as one of the keys' type.
Val finished_key(kir::Builder& b, Val key, const Order& order) {
  if (element_bits(order.dtype) < 32) key = b.convert(Op::kZExt, Type::kI32, key);
  return order.descending ? b.binary(Op::kXor, key, b.constant_int(key->type, -1)) : key;
}

}  // namespace

Val order_key(kir::Builder& b, Val bits, const Order& order) {
  const DType dtype = order.dtype;
  const Type type = bits->type;
  const int width = element_bits(dtype);
  Val key = bits;
  if (is_float(dtype)) {
    // The negative of the magnitude where the sign is set: -0 becomes 0.
    const Val sign = b.binary(Op::kAShr, bits, b.constant_int(type, width - 1));
    const Val magnitude = b.binary(Op::kAnd, bits, bits_constant(b, type, sign_of(width) - 1));
    key = b.sub(b.binary(Op::kXor, magnitude, sign), sign);
  }
  if (dtype != DType::kBool && !is_unsigned(dtype)) {
    key = b.binary(Op::kXor, key, bits_constant(b, type, sign_of(width)));
  }
  key = finished_key(b, key, order);
  const int64_t from = order.from_bit;
  return from == 0 ? key : b.binary(Op::kLShr, key, b.constant_int(key->type, from));
}

Val distinct_key(kir::Builder& b, Val bits, const Order& order) {
  if (!is_float(order.dtype)) return order_key(b, bits, {order.dtype, order.descending});
  // Negative numbers turn round; the others go above them.
  const int width = element_bits(order.dtype);
  const Val sign = b.binary(Op::kAShr, bits, b.constant_int(bits->type, width - 1));
  const Val turned = b.binary(Op::kOr, sign, bits_constant(b, bits->type, sign_of(width)));
  return finished_key(b, b.binary(Op::kXor, bits, turned), order);
}

Val bits_of_distinct_key(kir::Builder& b, Val key, const Order& order) {
  const DType dtype = order.dtype;
  const int width = element_bits(dtype);
  const Type type = kir::type_of(bits_dtype(dtype));
  if (order.descending) key = b.binary(Op::kXor, key, b.constant_int(key->type, -1));
  if (width < 32) key = b.convert(Op::kIntTrunc, type, key);
  if (dtype == DType::kBool || is_unsigned(dtype)) return key;
  const Val sign = bits_constant(b, type, sign_of(width));
  if (!is_float(dtype)) return b.binary(Op::kXor, key, sign);
  const Val above = b.binary(Op::kAShr, key, b.constant_int(type, width - 1));
  const Val turned = b.binary(Op::kOr, b.binary(Op::kXor, above, b.constant_int(type, -1)), sign);
  return b.binary(Op::kXor, key, turned);
}

}  // namespace tenon::ops
