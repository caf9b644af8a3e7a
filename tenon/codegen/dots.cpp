#include <llvm/IR/IntrinsicsX86.h>

#include "tenon/codegen/arithmetic.h"

namespace tenon::codegen {

namespace ids = llvm::Intrinsic;

namespace {

unsigned lane_count(const llvm::Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? vector->getNumElements() : 0;
}

}  // namespace

// Calls `emit` for every `lanes` lanes of the operands, which hold a multiple of that.
llvm::Value* Arithmetic::by_register(unsigned lanes, llvm::ArrayRef<Value*> args,
                                     const std::function<Value*(llvm::ArrayRef<Value*>)>& emit) {
  const unsigned total = lane_count(args[0]);
  if (total == lanes) return emit(args);
  llvm::SmallVector<Value*, 4> pieces;
  for (unsigned first = 0; first < total; first += lanes) {
    llvm::SmallVector<int, 16> which;
    for (unsigned k = 0; k < lanes; ++k) which.push_back(static_cast<int>(first + k));
    llvm::SmallVector<Value*, 3> piece;
    for (Value* arg : args) piece.push_back(b_.CreateShuffleVector(arg, which));
    pieces.push_back(emit(piece));
  }
  llvm::SmallVector<int, 64> both;
  while (pieces.size() > 1) {
    both.clear();
    for (unsigned k = 0; k < 2 * lane_count(pieces[0]); ++k) both.push_back(static_cast<int>(k));
    for (size_t k = 0; k < pieces.size() / 2; ++k) {
      pieces[k] = b_.CreateShuffleVector(pieces[2 * k], pieces[2 * k + 1], both);
    }
    pieces.resize(pieces.size() / 2);
  }
  return pieces[0];
}

// How many 32-bit lanes the target's dot and multiply-add instructions take at once of these
// operands; 0 when they are none for it.
unsigned Arithmetic::dot_lanes(const Value* value) const {
  const unsigned register_lanes = static_cast<unsigned>(target_.vector_bits) / 32;
  const unsigned lanes = lane_count(value);
  if (target_.is_arm || lanes < 4 || (lanes & (lanes - 1)) != 0) return 0;
  return std::min(lanes, register_lanes);
}

llvm::Value* Arithmetic::dot_bytes(llvm::ArrayRef<Value*> args) {
  const unsigned lanes = dot_lanes(args[0]);
  if (lanes == 0) return dot_bytes_one_by_one(args);
  auto id =
      lanes == 16 ? (target_.has_dots ? ids::x86_avx512_vpdpbusd_512 : ids::x86_avx512_pmaddw_d_512)
      : lanes == 8 ? (target_.has_dots ? ids::x86_avx512_vpdpbusd_256 : ids::x86_avx2_pmadd_wd)
                   : (target_.has_dots ? ids::x86_avx512_vpdpbusd_128 : ids::x86_sse2_pmadd_wd);
  return by_register(lanes, args, [&](llvm::ArrayRef<Value*> parts) -> Value* {
    if (target_.has_dots) return b_.CreateIntrinsic(id, {}, {parts[0], parts[1], parts[2]});
    // Products of even and of odd bytes, added in pairs: each is exact in 16 bits.
    auto* words = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes);
    Value* a = b_.CreateBitCast(parts[1], words);
    Value* b = b_.CreateBitCast(parts[2], words);
    Value* eight = integer(a, 16, 8);
    auto pairs = [&](Value* x, Value* y) { return b_.CreateIntrinsic(id, {}, {x, y}); };
    Value* even =
        pairs(b_.CreateAnd(a, integer(a, 16, 0xff)), b_.CreateAShr(b_.CreateShl(b, eight), eight));
    Value* odd = pairs(b_.CreateLShr(a, eight), b_.CreateAShr(b, eight));
    return b_.CreateAdd(parts[0], b_.CreateAdd(even, odd));
  });
}

llvm::Value* Arithmetic::dot_bytes_one_by_one(llvm::ArrayRef<Value*> args) {
  Value* sum = args[0];
  Value* top = integer(sum, 32, 24);
  for (uint64_t byte = 0; byte < 4; ++byte) {
    Value* a =
        b_.CreateAnd(b_.CreateLShr(args[1], integer(sum, 32, 8 * byte)), integer(sum, 32, 0xff));
    Value* b = b_.CreateAShr(b_.CreateShl(args[2], integer(sum, 32, 24 - 8 * byte)), top);
    sum = b_.CreateAdd(sum, b_.CreateMul(a, b));
  }
  return sum;
}

llvm::Value* Arithmetic::dot_bf16(llvm::ArrayRef<Value*> args) {
  const unsigned lanes = target_.has_dots ? dot_lanes(args[0]) : 0;
  if (lanes != 0) {
    auto id = lanes == 16  ? ids::x86_avx512bf16_dpbf16ps_512
              : lanes == 8 ? ids::x86_avx512bf16_dpbf16ps_256
                           : ids::x86_avx512bf16_dpbf16ps_128;
    auto* halves = llvm::FixedVectorType::get(b_.getBFloatTy(), 2 * lanes);
    return by_register(lanes, args, [&](llvm::ArrayRef<Value*> parts) -> Value* {
      return b_.CreateIntrinsic(
          id, {},
          {parts[0], b_.CreateBitCast(parts[1], halves), b_.CreateBitCast(parts[2], halves)});
    });
  }
  Value* sum = args[0];
  auto low = [&](Value* pair) {
    return float_of(b_.CreateShl(pair, integer(pair, 32, 16)), b_.getFloatTy());
  };
  auto high = [&](Value* pair) {
    return float_of(b_.CreateAnd(pair, integer(pair, 32, 0xffff0000u)), b_.getFloatTy());
  };
  sum = multiply_add(high(args[1]), high(args[2]), sum);
  return multiply_add(low(args[1]), low(args[2]), sum);
}

}  // namespace tenon::codegen
