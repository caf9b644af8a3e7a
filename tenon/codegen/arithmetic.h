// The pure instructions of kir as LLVM IR, for scalars and vectors alike: the lanes of the operands
// are those of the result.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>

#include "tenon/codegen/target.h"
#include "tenon/kir/kernel.h"

namespace tenon::codegen {

class Arithmetic {
 public:
  Arithmetic(llvm::IRBuilder<>& builder, const Target& target) : b_(builder), target_(target) {}

  // f16 and bf16 are held as their bits, i16. lanes 0: a scalar.
  llvm::Type* type(kir::Type type, int lanes = 0) const;
  llvm::Constant* constant(const kir::Inst& inst) const;

  // The result of pure instruction `inst` on operands that are all scalars or all vectors.
  llvm::Value* emit(const kir::Inst& inst, llvm::ArrayRef<llvm::Value*> args);

  // dots.cpp: kDot4 and kDot2.
  llvm::Value* dot_bytes(llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* dot_bf16(llvm::ArrayRef<llvm::Value*> args);

  llvm::Value* combine(kir::Combine combine, llvm::Value* a, llvm::Value* b);
  llvm::Constant* neutral(kir::Combine combine, kir::Type type) const;

 private:
  using Value = llvm::Value;
  // `element` with as many lanes as `model`.
  static llvm::Type* like(const Value* model, llvm::Type* element);
  static Value* integer(const Value* model, int bits, uint64_t value);  // splat of an iN
  static Value* real(const Value* model, double value);                 // of model's float type
  llvm::Type* int_type(int bits) const { return b_.getIntNTy(bits); }
  Value* bits_of(Value* x);                       // float → integer of its width
  Value* float_of(Value* x, llvm::Type* like_f);  // and back
  Value* intrinsic(llvm::Intrinsic::ID id, Value* a) { return b_.CreateUnaryIntrinsic(id, a); }
  Value* intrinsic(llvm::Intrinsic::ID id, Value* a, Value* b) {
    return b_.CreateBinaryIntrinsic(id, a, b);
  }

  Value* emit_float(const kir::Inst& inst, llvm::ArrayRef<Value*> args);
  Value* emit_int(const kir::Inst& inst, llvm::ArrayRef<Value*> args);
  Value* divide(kir::Op op, Value* a, Value* b);
  Value* multiply_high(Value* a, Value* b);
  Value* compare(kir::Pred pred, Value* a, Value* b);
  Value* extremum(bool largest, Value* a, Value* b);

  // dots.cpp
  Value* by_register(unsigned lanes, llvm::ArrayRef<Value*> args,
                     const std::function<Value*(llvm::ArrayRef<Value*>)>& emit);
  unsigned dot_lanes(const Value* value) const;
  Value* dot_bytes_one_by_one(llvm::ArrayRef<Value*> args);

  // rounding.cpp
  Value* multiply_add(Value* a, Value* b, Value* c);  // one rounding where the target has it
  Value* residual(Value* a, Value* b, Value* c);
  Value* round(kir::Op op, Value* x);
  Value* scale(Value* a, Value* power);

  // conversions.cpp
  Value* convert(const kir::Inst& inst, Value* x);
  Value* extend_float(Value* x, kir::Type from, kir::Type to);
  Value* truncate_float(Value* x, kir::Type from, kir::Type to);
  Value* double_to_odd_float(Value* x);
  Value* half_to_float(Value* x);
  Value* float_to_half(Value* x);
  Value* float_to_bfloat(Value* x);
  Value* int_to_float(Value* x, bool is_signed, kir::Type to);
  Value* double_of_halves(Value* x, bool is_signed);
  Value* float_to_int(Value* x, bool is_signed, int bits);
  Value* saturate(Value* x, bool is_signed, int bits);

  llvm::IRBuilder<>& b_;
  const Target& target_;
};

}  // namespace tenon::codegen
