// Multiply-add, residuals, rounding to integers and scaling by powers of two, also where the target
// lacks the instruction.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "tenon/codegen/arithmetic.h"
#include "tenon/kir/scalar.h"

namespace tenon::codegen {

using kir::Op;
namespace ids = llvm::Intrinsic;

llvm::Value* Arithmetic::multiply_add(Value* a, Value* b, Value* c) {
  if (target_.has_fma) return b_.CreateIntrinsic(ids::fma, {a->getType()}, {a, b, c});
  return b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

// Without the instruction: the product of floats is exact in double. That of doubles is the sum of
// the products of their halves of 26 bits, which are exact, from the largest on (Dekker, "A
// floating-point technique for extending the available precision", 1971).
llvm::Value* Arithmetic::residual(Value* a, Value* b, Value* c) {
  if (target_.has_fma) return multiply_add(a, b, c);
  if (a->getType()->getScalarType()->isFloatTy()) {
    llvm::Type* wide = like(a, b_.getDoubleTy());
    Value* product = b_.CreateFMul(b_.CreateFPExt(a, wide), b_.CreateFPExt(b, wide));
    return b_.CreateFPTrunc(b_.CreateFAdd(product, b_.CreateFPExt(c, wide)), a->getType());
  }
  auto upper_half = [&](Value* x) {
    Value* rounded = b_.CreateAdd(bits_of(x), integer(x, 64, kir::kHalfStep));
    return float_of(b_.CreateAnd(rounded, integer(x, 64, ~(2 * kir::kHalfStep - 1))), x->getType());
  };
  Value* a_high = upper_half(a);
  Value* b_high = upper_half(b);
  Value* a_low = b_.CreateFSub(a, a_high);
  Value* b_low = b_.CreateFSub(b, b_high);
  Value* sum = b_.CreateFAdd(b_.CreateFMul(a_high, b_high), c);
  sum = b_.CreateFAdd(sum, b_.CreateFMul(a_high, b_low));
  sum = b_.CreateFAdd(sum, b_.CreateFMul(a_low, b_high));
  return b_.CreateFAdd(sum, b_.CreateFMul(a_low, b_low));
}

llvm::Value* Arithmetic::round(Op op, Value* x) {
  if (target_.has_round) {
    switch (op) {
      case Op::kFloor: return intrinsic(ids::floor, x);
      case Op::kCeil: return intrinsic(ids::ceil, x);
      case Op::kTrunc: return intrinsic(ids::trunc, x);
      default: return intrinsic(ids::roundeven, x);
    }
  }
  // Adding and subtracting 2^23 (2^52) rounds to an integer; larger values are integers already.
  bool is_double = x->getType()->getScalarType()->isDoubleTy();
  Value* shift = real(x, is_double ? 0x1p52 : 0x1p23);
  Value* size = intrinsic(ids::fabs, x);
  Value* nearest = b_.CreateFSub(b_.CreateFAdd(size, shift), shift);
  Value* one = real(x, 1.0);
  Value* zero = real(x, 0.0);
  Value* result = nearest;
  if (op == Op::kTrunc) {
    Value* over = b_.CreateFCmpOGT(nearest, size);
    result = b_.CreateFSub(nearest, b_.CreateSelect(over, one, zero));
  } else if (op != Op::kRint) {
    Value* with_sign = intrinsic(ids::copysign, nearest, x);
    Value* wrong =
        op == Op::kFloor ? b_.CreateFCmpOGT(with_sign, x) : b_.CreateFCmpOLT(with_sign, x);
    Value* fix = b_.CreateSelect(wrong, one, zero);
    result = op == Op::kFloor ? b_.CreateFSub(with_sign, fix) : b_.CreateFAdd(with_sign, fix);
  }
  result = intrinsic(ids::copysign, result, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(size, shift), result, x);
}

// Without the instruction, two factors reach every exponent: the first is exact, so that the second
// rounds once. The power stands in the low bits of a sum, biased by two biases; its halves become
// the exponents.
llvm::Value* Arithmetic::scale(Value* a, Value* power) {
  llvm::Type* type = a->getType();
  const bool is_double = type->getScalarType()->isDoubleTy();
  if (target_.vector_bits == 512 && type->isVectorTy()) {
    const auto bits = type->getPrimitiveSizeInBits().getFixedValue();
    Value* all = b_.getInt8(0xff);
    auto narrow = [&](llvm::Intrinsic::ID single, llvm::Intrinsic::ID twofold) {
      return b_.CreateIntrinsic(is_double ? twofold : single, {}, {a, power, a, all});
    };
    if (bits == 128) {
      return narrow(ids::x86_avx512_mask_scalef_ps_128, ids::x86_avx512_mask_scalef_pd_128);
    }
    if (bits == 256) {
      return narrow(ids::x86_avx512_mask_scalef_ps_256, ids::x86_avx512_mask_scalef_pd_256);
    }
    if (bits == 512) {
      constexpr int kCurrentRounding = 4;
      return b_.CreateIntrinsic(
          is_double ? ids::x86_avx512_mask_scalef_pd_512 : ids::x86_avx512_mask_scalef_ps_512, {},
          {a, power, a, is_double ? all : b_.getInt16(0xffff), b_.getInt32(kCurrentRounding)});
    }
  }
  const int width = is_double ? 64 : 32;
  const auto fraction = static_cast<uint64_t>(is_double ? 52 : 23);
  const double shift = is_double ? 0x1.8p52 + 2 * 1023 : 0x1.8p23 + 2 * 127;
  const uint64_t exponents = is_double ? 0x7ff0000000000000 : 0x7f800000;
  Value* twice = bits_of(b_.CreateFAdd(power, real(power, shift)));
  Value* first = b_.CreateAnd(b_.CreateShl(twice, integer(twice, width, fraction - 1)),
                              integer(twice, width, exponents));
  Value* second = b_.CreateSub(b_.CreateShl(twice, integer(twice, width, fraction)), first);
  return b_.CreateFMul(b_.CreateFMul(a, float_of(first, type)), float_of(second, type));
}

}  // namespace tenon::codegen
