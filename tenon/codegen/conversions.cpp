// Conversions between element types. Saturation and the half formats are spelled out, because
// LLVM's own expansions call functions or leave results undefined.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "tenon/base/error.h"
#include "tenon/codegen/arithmetic.h"

namespace tenon::codegen {

using kir::Inst;
using kir::Op;
using kir::Type;
namespace ids = llvm::Intrinsic;

llvm::Value* Arithmetic::convert(const Inst& inst, Value* x) {
  Type from = inst.args[0]->type;
  Type to = inst.type;
  llvm::Type* result = like(x, type(to));
  switch (inst.op) {
    case Op::kSExt: return b_.CreateSExt(x, result);
    case Op::kZExt: return b_.CreateZExt(x, result);
    case Op::kIntTrunc: return b_.CreateTrunc(x, result);
    case Op::kBitcast: return b_.CreateBitCast(x, result);
    case Op::kFExt: return extend_float(x, from, to);
    case Op::kFTrunc: return truncate_float(x, from, to);
    case Op::kSToF:
    case Op::kUToF: return int_to_float(x, inst.op == Op::kSToF, to);
    default: {
      bool is_half = from == Type::kF16 || from == Type::kBF16;
      if (is_half) x = extend_float(x, from, Type::kF32);
      return float_to_int(x, inst.op == Op::kFToS, kir::bits(to));
    }
  }
}

llvm::Value* Arithmetic::extend_float(Value* x, Type from, Type to) {
  Value* wide = x;
  if (from == Type::kF16) wide = half_to_float(x);
  if (from == Type::kBF16) {
    Value* bits = b_.CreateShl(b_.CreateZExt(x, like(x, b_.getInt32Ty())), integer(x, 32, 16));
    wide = float_of(bits, b_.getFloatTy());
  }
  return to == Type::kF64 ? b_.CreateFPExt(wide, like(x, b_.getDoubleTy())) : wide;
}

llvm::Value* Arithmetic::truncate_float(Value* x, Type from, Type to) {
  if (to == Type::kF32) return b_.CreateFPTrunc(x, like(x, b_.getFloatTy()));
  if (from == Type::kF64) x = double_to_odd_float(x);
  return to == Type::kF16 ? float_to_half(x) : float_to_bfloat(x);
}

// Towards zero, the last bit set when anything was lost: a second rounding to a format at least two
// bits shorter then gives what one rounding would.
llvm::Value* Arithmetic::double_to_odd_float(Value* x) {
  Value* nearest = b_.CreateFPTrunc(x, like(x, b_.getFloatTy()));
  Value* back = b_.CreateFPExt(nearest, x->getType());
  Value* inexact = b_.CreateFCmpONE(back, x);
  Value* over = b_.CreateFCmpOGT(intrinsic(ids::fabs, back), intrinsic(ids::fabs, x));
  Value* bits = bits_of(nearest);
  llvm::Type* word = bits->getType();
  Value* down = b_.CreateSub(bits, b_.CreateZExt(over, word));
  return float_of(b_.CreateOr(down, b_.CreateZExt(inexact, word)), b_.getFloatTy());
}

llvm::Value* Arithmetic::half_to_float(Value* x) {
  if (target_.has_f16c) {
    Value* wide = b_.CreateFPExt(float_of(x, b_.getHalfTy()), like(x, b_.getFloatTy()));
    // Else LLVM rounds and compares halves, of which no level has vectors.
    return b_.CreateArithmeticFence(wide, wide->getType());
  }
  // Exponent and mantissa in place, then times 2^112 corrects the bias, of subnormals too.
  Value* bits = b_.CreateZExt(x, like(x, b_.getInt32Ty()));
  Value* size = b_.CreateAnd(bits, integer(x, 32, 0x7fff));
  Value* shifted = b_.CreateShl(size, integer(x, 32, 13));
  Value* plain = float_of(shifted, b_.getFloatTy());
  Value* scaled = bits_of(b_.CreateFMul(plain, real(plain, 0x1p112)));
  Value* special = b_.CreateOr(shifted, integer(x, 32, 0x7f800000));
  Value* is_special = b_.CreateICmpUGE(size, integer(x, 32, 0x7c00));
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, integer(x, 32, 0x8000)), integer(x, 32, 16));
  return float_of(b_.CreateOr(b_.CreateSelect(is_special, special, scaled), sign), b_.getFloatTy());
}

llvm::Value* Arithmetic::float_to_half(Value* x) {
  if (target_.has_f16c) return bits_of(b_.CreateFPTrunc(x, like(x, b_.getHalfTy())));
  Value* bits = bits_of(x);
  Value* size = b_.CreateAnd(bits, integer(x, 32, 0x7fffffff));
  // Normal results: rebias by 112, round at bit 13. Carries run into the exponent, up to infinity.
  Value* lowest = b_.CreateAnd(b_.CreateLShr(size, integer(x, 32, 13)), integer(x, 32, 1));
  Value* bias = integer(x, 32, 0xfff - (uint64_t{112} << 23));
  Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(size, bias), lowest), integer(x, 32, 13));
  // Subnormal results: the last place of 0.5f is 2^-24, that of a subnormal half.
  Value* half = real(x, 0.5);
  Value* sum = b_.CreateFAdd(float_of(size, b_.getFloatTy()), half);
  Value* small = b_.CreateSub(bits_of(sum), integer(x, 32, 0x3f000000));
  Value* payload = b_.CreateAnd(b_.CreateLShr(size, integer(x, 32, 13)), integer(x, 32, 0x3ff));
  Value* nan = b_.CreateOr(payload, integer(x, 32, 0x7e00));
  Value* result =
      b_.CreateSelect(b_.CreateICmpULT(size, integer(x, 32, 0x38800000)), small, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(size, integer(x, 32, 0x47800000)),
                           integer(x, 32, 0x7c00), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(size, integer(x, 32, 0x7f800000)), nan, result);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, integer(x, 32, 16)), integer(x, 32, 0x8000));
  return b_.CreateTrunc(b_.CreateOr(result, sign), like(x, b_.getInt16Ty()));
}

llvm::Value* Arithmetic::float_to_bfloat(Value* x) {
  Value* bits = bits_of(x);
  Value* high = b_.CreateLShr(bits, integer(x, 32, 16));
  Value* lowest = b_.CreateAnd(high, integer(x, 32, 1));
  Value* sum = b_.CreateAdd(b_.CreateAdd(bits, integer(x, 32, 0x7fff)), lowest);
  Value* rounded = b_.CreateLShr(sum, integer(x, 32, 16));
  Value* nan = b_.CreateOr(high, integer(x, 32, 0x40));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(x, x), nan, rounded);
  return b_.CreateTrunc(result, like(x, b_.getInt16Ty()));
}

llvm::Value* Arithmetic::int_to_float(Value* x, bool is_signed, Type to) {
  auto cast = [&](Value* v, llvm::Type* t) {
    return is_signed ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t);
  };
  const int width = static_cast<int>(x->getType()->getScalarSizeInBits());
  const bool by_halves = width == 64 && x->getType()->isVectorTy() && !target_.has_masks &&
                         !target_.is_arm && !llvm::isa<llvm::SExtInst, llvm::ZExtInst>(x);
  if (to == Type::kF64 && by_halves) return double_of_halves(x, is_signed);
  if (to == Type::kF64 || (to == Type::kF32 && !by_halves)) return cast(x, like(x, type(to)));
  // Through a double that lost nothing, or kept a sticky bit far below the result's last place.
  if (width == 64) {
    Value* low = b_.CreateAnd(x, integer(x, 64, 0x7ff));
    Value* sticky = b_.CreateAnd(b_.CreateAdd(low, integer(x, 64, 0x7ff)), integer(x, 64, 0x800));
    Value* odd = b_.CreateOr(b_.CreateAnd(x, integer(x, 64, ~uint64_t{0x7ff})), sticky);
    Value* size = is_signed ? intrinsic(ids::abs, x, b_.getFalse()) : x;
    Value* is_exact = b_.CreateICmpULT(size, integer(x, 64, uint64_t{1} << 52));
    x = b_.CreateSelect(is_exact, x, odd);
  }
  Value* wide = by_halves ? double_of_halves(x, is_signed) : cast(x, like(x, b_.getDoubleTy()));
  return truncate_float(wide, Type::kF64, to);
}

// Without vector instructions for 64 bits: the halves of an integer become the low bits of 2^84 and
// 2^52 as doubles, and one sum rounds.
llvm::Value* Arithmetic::double_of_halves(Value* x, bool is_signed) {
  const uint64_t top = is_signed ? 0x4530000080000000 : 0x4530000000000000;
  const double offset = is_signed ? 0x1.00000801p84 : 0x1.00000001p84;
  Value* high = b_.CreateXor(b_.CreateLShr(x, integer(x, 64, 32)), integer(x, 64, top));
  Value* low =
      b_.CreateOr(b_.CreateAnd(x, integer(x, 64, 0xffffffff)), integer(x, 64, 0x4330000000000000));
  Value* upper = float_of(high, b_.getDoubleTy());
  return b_.CreateFAdd(b_.CreateFSub(upper, real(upper, offset)), float_of(low, b_.getDoubleTy()));
}

llvm::Value* Arithmetic::float_to_int(Value* x, bool is_signed, int bits) {
  if (bits == 1) throw InternalError("codegen: a float becomes i1 by comparison only");
  if (bits >= 32) return saturate(x, is_signed, bits);
  // Truncation is monotone, so that narrow results can be limited after it.
  Value* wide = saturate(x, true, 32);
  auto low = is_signed ? ~uint64_t{0} << (bits - 1) : uint64_t{0};
  uint64_t high = (uint64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  wide = intrinsic(ids::smax, wide, integer(x, 32, low & 0xffffffffu));
  wide = intrinsic(ids::smin, wide, integer(x, 32, high));
  return b_.CreateTrunc(wide, like(x, int_type(bits)));
}

llvm::Value* Arithmetic::saturate(Value* x, bool is_signed, int bits) {
  llvm::Type* result = like(x, int_type(bits));
  unsigned width = static_cast<unsigned>(bits);
  double limit = bits == 32 ? (is_signed ? 0x1p31 : 0x1p32) : (is_signed ? 0x1p63 : 0x1p64);
  Value* over = b_.CreateFCmpOGE(x, real(x, limit));
  if (!is_signed) {
    Value* value = b_.CreateFPToUI(x, result);
    value = b_.CreateSelect(over, llvm::ConstantInt::getAllOnesValue(result), value);
    return b_.CreateSelect(b_.CreateFCmpOGT(x, real(x, 0.0)), value,
                           llvm::ConstantInt::get(result, 0));
  }
  Value* value = b_.CreateFPToSI(x, result);
  auto bound = [&](const llvm::APInt& v) { return llvm::ConstantInt::get(result, v); };
  value = b_.CreateSelect(over, bound(llvm::APInt::getSignedMaxValue(width)), value);
  Value* under = b_.CreateFCmpOLT(x, real(x, -limit));
  value = b_.CreateSelect(under, bound(llvm::APInt::getSignedMinValue(width)), value);
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), llvm::ConstantInt::get(result, 0), value);
}

}  // namespace tenon::codegen
