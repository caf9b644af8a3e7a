// Fused multiply-add, rounding to integers and scaling by powers of two, also where the target
// lacks the instruction.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cstddef>

#include "tenon/abi/kernel_abi.h"
#include "tenon/codegen/arithmetic.h"

namespace tenon::codegen {

using kir::Op;
namespace ids = llvm::Intrinsic;

llvm::Value* Arithmetic::multiply_add(Value* a, Value* b, Value* c) {
  if (target_.has_fma) return fma(a, b, c);
  return b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

llvm::Value* Arithmetic::fma(Value* a, Value* b, Value* c) {
  if (target_.has_fma) {
    return b_.CreateIntrinsic(ids::fma, {a->getType()}, {a, b, c});
  }
  if (a->getType()->getScalarType()->isDoubleTy()) {
    constexpr int kFmaSlot = offsetof(abi::RuntimeTable, fma) / sizeof(void*);
    return call_table(kFmaSlot, {a, b, c});
  }
  return fma_by_double(a, b, c);
}

// The product of two floats is exact in double. Rounding the sum to odd keeps enough for the last
// rounding to be right (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
// algorithms using rounding to odd", 2008).
llvm::Value* Arithmetic::fma_by_double(Value* a, Value* b, Value* c) {
  llvm::Type* wide = like(a, b_.getDoubleTy());
  Value* product = b_.CreateFMul(b_.CreateFPExt(a, wide), b_.CreateFPExt(b, wide));
  Value* addend = b_.CreateFPExt(c, wide);
  Value* sum = b_.CreateFAdd(product, addend);
  Value* part = b_.CreateFSub(sum, product);
  Value* error =
      b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, part)), b_.CreateFSub(addend, part));
  Value* bits = bits_of(sum);
  Value* zero = llvm::ConstantFP::get(wide, 0.0);
  Value* inexact = b_.CreateFCmpONE(error, zero);
  Value* odd = b_.CreateTrunc(bits, like(a, b_.getInt1Ty()));
  // The neighbour towards the exact sum is one step up in magnitude when error and sum agree in
  // sign, else one step down.
  Value* grows = b_.CreateICmpSGE(b_.CreateXor(bits, bits_of(error)), integer(a, 64, 0));
  Value* step = b_.CreateSelect(grows, integer(a, 64, 1), integer(a, 64, ~uint64_t{0}));
  Value* adjust = b_.CreateAnd(inexact, b_.CreateNot(odd));
  Value* rounded = b_.CreateSelect(adjust, b_.CreateAdd(bits, step), bits);
  return b_.CreateFPTrunc(b_.CreateBitCast(rounded, wide), a->getType());
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
