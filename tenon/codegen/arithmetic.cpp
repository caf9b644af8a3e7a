#include "tenon/codegen/arithmetic.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <limits>

#include "tenon/base/error.h"
#include "tenon/base/half.h"

namespace tenon::codegen {

using kir::Combine;
using kir::Inst;
using kir::Op;
using kir::Pred;
using kir::Type;
namespace ids = llvm::Intrinsic;

llvm::Type* Arithmetic::type(Type type, int lanes) const {
  llvm::Type* element = nullptr;
  if (type == Type::kF32) {
    element = b_.getFloatTy();
  } else if (type == Type::kF64) {
    element = b_.getDoubleTy();
  } else {
    element = int_type(kir::bits(type));
  }
  return lanes == 0 ? element
                    : static_cast<llvm::Type*>(
                          llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes)));
}

llvm::Constant* Arithmetic::constant(const Inst& inst) const {
  llvm::Type* t = type(inst.type);
  switch (inst.type) {
    case Type::kF32:
    case Type::kF64: return llvm::ConstantFP::get(t, inst.imm_float);
    case Type::kF16: return llvm::ConstantInt::get(t, f16_from_double(inst.imm_float));
    case Type::kBF16:
      return llvm::ConstantInt::get(t, bf16_from_float(static_cast<float>(inst.imm_float)));
    default: return llvm::ConstantInt::get(t, static_cast<uint64_t>(inst.imm_int), true);
  }
}

llvm::Type* Arithmetic::like(const Value* model, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(model->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

llvm::Value* Arithmetic::integer(const Value* model, int bits, uint64_t value) {
  llvm::Type* element = llvm::Type::getIntNTy(model->getContext(), static_cast<unsigned>(bits));
  return llvm::ConstantInt::get(like(model, element), value);
}

llvm::Value* Arithmetic::real(const Value* model, double value) {
  return llvm::ConstantFP::get(model->getType(), value);
}

llvm::Value* Arithmetic::bits_of(Value* x) {
  return b_.CreateBitCast(x,
                          like(x, int_type(static_cast<int>(x->getType()->getScalarSizeInBits()))));
}

llvm::Value* Arithmetic::float_of(Value* x, llvm::Type* like_f) {
  return b_.CreateBitCast(x, like(x, like_f->getScalarType()));
}

llvm::Value* Arithmetic::emit(const Inst& inst, llvm::ArrayRef<Value*> args) {
  switch (inst.op) {
    case Op::kCmp: return compare(inst.pred, args[0], args[1]);
    case Op::kSelect: return b_.CreateSelect(args[0], args[1], args[2]);
    case Op::kSExt:
    case Op::kZExt:
    case Op::kIntTrunc:
    case Op::kFExt:
    case Op::kFTrunc:
    case Op::kSToF:
    case Op::kUToF:
    case Op::kFToS:
    case Op::kFToU:
    case Op::kBitcast: return convert(inst, args[0]);
    default: return kir::is_float(inst.type) ? emit_float(inst, args) : emit_int(inst, args);
  }
}

llvm::Value* Arithmetic::emit_float(const Inst& inst, llvm::ArrayRef<Value*> args) {
  switch (inst.op) {
    case Op::kAdd: return b_.CreateFAdd(args[0], args[1]);
    case Op::kSub: return b_.CreateFSub(args[0], args[1]);
    case Op::kMul: return b_.CreateFMul(args[0], args[1]);
    case Op::kDiv: return b_.CreateFDiv(args[0], args[1]);
    case Op::kNeg: return b_.CreateFNeg(args[0]);
    case Op::kAbs: return intrinsic(ids::fabs, args[0]);
    case Op::kSqrt: return intrinsic(ids::sqrt, args[0]);
    case Op::kCopySign: return intrinsic(ids::copysign, args[0], args[1]);
    case Op::kScale: return scale(args[0], args[1]);
    case Op::kFMin: return extremum(false, args[0], args[1]);
    case Op::kFMax: return extremum(true, args[0], args[1]);
    case Op::kFMinFast:
      return b_.CreateSelect(b_.CreateFCmpOLT(args[0], args[1]), args[0], args[1]);
    case Op::kFMaxFast:
      return b_.CreateSelect(b_.CreateFCmpOGT(args[0], args[1]), args[0], args[1]);
    case Op::kResidual: return residual(args[0], args[1], args[2]);
    case Op::kMulAdd: return multiply_add(args[0], args[1], args[2]);
    case Op::kDot2: return dot_bf16(args);
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRint: return round(inst.op, args[0]);
    default: break;
  }
  throw InternalError(
      fmt::format("codegen: '{}' has no code for {}", name(inst.op), kir::name(inst.type)));
}

llvm::Value* Arithmetic::emit_int(const Inst& inst, llvm::ArrayRef<Value*> args) {
  Value* a = args[0];
  Value* b = args.size() > 1 ? args[1] : nullptr;
  switch (inst.op) {
    case Op::kAdd: return b_.CreateAdd(a, b);
    case Op::kSub: return b_.CreateSub(a, b);
    case Op::kMul: return b_.CreateMul(a, b);
    case Op::kNeg: return b_.CreateNeg(a);
    case Op::kAbs: return intrinsic(ids::abs, a, b_.getFalse());
    case Op::kSDiv:
    case Op::kUDiv:
    case Op::kSRem:
    case Op::kURem: return divide(inst.op, a, b);
    case Op::kSMin: return intrinsic(ids::smin, a, b);
    case Op::kSMax: return intrinsic(ids::smax, a, b);
    case Op::kUMin: return intrinsic(ids::umin, a, b);
    case Op::kUMax: return intrinsic(ids::umax, a, b);
    case Op::kAnd: return b_.CreateAnd(a, b);
    case Op::kOr: return b_.CreateOr(a, b);
    case Op::kXor: return b_.CreateXor(a, b);
    case Op::kShl: return b_.CreateShl(a, b);
    case Op::kLShr: return b_.CreateLShr(a, b);
    case Op::kAShr: return b_.CreateAShr(a, b);
    case Op::kUMulHi: return multiply_high(a, b);
    case Op::kDot4: return dot_bytes(args);
    case Op::kPopCount: return intrinsic(ids::ctpop, a);
    case Op::kClz: return intrinsic(ids::ctlz, a, b_.getFalse());
    default: break;
  }
  throw InternalError(
      fmt::format("codegen: '{}' has no code for {}", name(inst.op), kir::name(inst.type)));
}

// Vectors have no integer division. Quotients of up to 32 bits are exact through floats with room:
// a quotient that is no integer is at least 1/b away from one, farther than the rounding of a/b.
llvm::Value* Arithmetic::divide(Op op, Value* a, Value* b) {
  bool is_signed = op == Op::kSDiv || op == Op::kSRem;
  bool wants_quotient = op == Op::kSDiv || op == Op::kUDiv;
  int width = static_cast<int>(a->getType()->getScalarSizeInBits());
  bool plain = !a->getType()->isVectorTy() || width > 32 || llvm::isa<llvm::Constant>(b);
  if (plain) {
    if (wants_quotient) return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
    return is_signed ? b_.CreateSRem(a, b) : b_.CreateURem(a, b);
  }
  llvm::Type* real = like(a, width == 32 ? b_.getDoubleTy() : b_.getFloatTy());
  auto widen = [&](Value* x) {
    return is_signed ? b_.CreateSIToFP(x, real) : b_.CreateUIToFP(x, real);
  };
  Value* ratio = b_.CreateFDiv(widen(a), widen(b));
  Value* quotient =
      is_signed ? b_.CreateFPToSI(ratio, a->getType()) : b_.CreateFPToUI(ratio, a->getType());
  return wants_quotient ? quotient : b_.CreateSub(a, b_.CreateMul(quotient, b));
}

llvm::Value* Arithmetic::multiply_high(Value* a, Value* b) {
  int width = static_cast<int>(a->getType()->getScalarSizeInBits());
  llvm::Type* wide = like(a, int_type(2 * width));
  Value* product = b_.CreateMul(b_.CreateZExt(a, wide), b_.CreateZExt(b, wide));
  Value* high = b_.CreateLShr(product, llvm::ConstantInt::get(wide, static_cast<uint64_t>(width)));
  return b_.CreateTrunc(high, a->getType());
}

llvm::Value* Arithmetic::compare(Pred pred, Value* a, Value* b) {
  bool is_real = a->getType()->isFPOrFPVectorTy();
  using P = llvm::CmpInst;
  P::Predicate p = P::BAD_ICMP_PREDICATE;
  switch (pred) {
    case Pred::kEq: p = is_real ? P::FCMP_OEQ : P::ICMP_EQ; break;
    case Pred::kNe: p = is_real ? P::FCMP_UNE : P::ICMP_NE; break;
    case Pred::kSLt: p = P::ICMP_SLT; break;
    case Pred::kSLe: p = P::ICMP_SLE; break;
    case Pred::kSGt: p = P::ICMP_SGT; break;
    case Pred::kSGe: p = P::ICMP_SGE; break;
    case Pred::kULt: p = P::ICMP_ULT; break;
    case Pred::kULe: p = P::ICMP_ULE; break;
    case Pred::kUGt: p = P::ICMP_UGT; break;
    case Pred::kUGe: p = P::ICMP_UGE; break;
    case Pred::kFLt: p = P::FCMP_OLT; break;
    case Pred::kFLe: p = P::FCMP_OLE; break;
    case Pred::kFGt: p = P::FCMP_OGT; break;
    case Pred::kFGe: p = P::FCMP_OGE; break;
    case Pred::kUno: p = P::FCMP_UNO; break;
  }
  if (P::isFPPredicate(p) != is_real) {
    throw InternalError(
        fmt::format("codegen: cmp: predicate '{}' does not fit its operands", name(pred)));
  }
  return b_.CreateCmp(p, a, b);
}

// AVX-512's range instruction orders the zeros; a sum brings out NaNs. Elsewhere on x86 the bits of
// the extremum in both orders do: they differ only between zeros. LLVM's own expansion is longer,
// and loses a NaN against a zero between f16 conversions (LLVM 19, AVX2).
llvm::Value* Arithmetic::extremum(bool largest, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  bool whole = type->isVectorTy() && type->getPrimitiveSizeInBits() == 512;
  if (target_.is_arm) return intrinsic(largest ? ids::maximum : ids::minimum, a, b);
  if (target_.vector_bits != 512 || !whole) {
    auto either = [&](Value* x, Value* y) {
      Value* first = largest ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
      return bits_of(b_.CreateSelect(first, x, y));
    };
    Value* both = largest ? b_.CreateAnd(either(a, b), either(b, a))
                          : b_.CreateOr(either(a, b), either(b, a));
    return b_.CreateSelect(b_.CreateFCmpUNO(a, b), b_.CreateFAdd(a, b), float_of(both, type));
  }
  bool single = type->getScalarType()->isFloatTy();
  Value* all = single ? b_.getInt16(0xffff) : b_.getInt8(0xff);
  constexpr int kSignOfResult = 4;
  constexpr int kCurrentRounding = 4;
  Value* ordered = b_.CreateIntrinsic(
      single ? ids::x86_avx512_mask_range_ps_512 : ids::x86_avx512_mask_range_pd_512, {},
      {a, b, b_.getInt32(kSignOfResult + (largest ? 1 : 0)), a, all,
       b_.getInt32(kCurrentRounding)});
  return b_.CreateSelect(b_.CreateFCmpUNO(a, b), b_.CreateFAdd(a, b), ordered);
}

llvm::Value* Arithmetic::combine(Combine combine, Value* a, Value* b) {
  bool is_real = a->getType()->isFPOrFPVectorTy();
  switch (combine) {
    case Combine::kAdd: return is_real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Combine::kMul: return is_real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Combine::kFMin: return extremum(false, a, b);
    case Combine::kFMax: return extremum(true, a, b);
    case Combine::kSMin: return intrinsic(ids::smin, a, b);
    case Combine::kSMax: return intrinsic(ids::smax, a, b);
    case Combine::kUMin: return intrinsic(ids::umin, a, b);
    case Combine::kUMax: return intrinsic(ids::umax, a, b);
    case Combine::kAnd: return b_.CreateAnd(a, b);
    case Combine::kOr: return b_.CreateOr(a, b);
    case Combine::kXor: return b_.CreateXor(a, b);
    case Combine::kNone: break;
  }
  throw InternalError("codegen: a carried value without combine cannot be divided among lanes");
}

llvm::Constant* Arithmetic::neutral(Combine combine, Type kind) const {
  llvm::Type* t = type(kind);
  if (t->isFloatingPointTy()) {
    switch (combine) {
      case Combine::kAdd: return llvm::ConstantFP::get(t, -0.0);  // -0 + x is x, also for -0
      case Combine::kMul: return llvm::ConstantFP::get(t, 1.0);
      case Combine::kFMin: return llvm::ConstantFP::getInfinity(t, false);
      case Combine::kFMax: return llvm::ConstantFP::getInfinity(t, true);
      default: break;
    }
  } else {
    unsigned width = t->getIntegerBitWidth();
    switch (combine) {
      case Combine::kMul: return llvm::ConstantInt::get(t, 1);
      case Combine::kSMin: return llvm::ConstantInt::get(t, llvm::APInt::getSignedMaxValue(width));
      case Combine::kSMax: return llvm::ConstantInt::get(t, llvm::APInt::getSignedMinValue(width));
      case Combine::kUMin:
      case Combine::kAnd: return llvm::ConstantInt::getAllOnesValue(t);
      case Combine::kAdd:
      case Combine::kUMax:
      case Combine::kOr:
      case Combine::kXor: return llvm::ConstantInt::get(t, 0);
      default: break;
    }
  }
  throw InternalError(
      fmt::format("codegen: combine '{}' does not fit {}", name(combine), kir::name(kind)));
}

}  // namespace tenon::codegen
