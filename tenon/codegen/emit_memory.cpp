// Addresses, and hints for them.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <numeric>

#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;
using kir::Op;

llvm::Type* Emitter::memory_type(uint32_t buffer) const {
  kir::Type type = kir::type_of(kernel_.buffers[buffer].dtype);
  return type == kir::Type::kI1 ? arithmetic_.type(kir::Type::kI8) : arithmetic_.type(type);
}

llvm::Align Emitter::alignment(uint32_t buffer) const {
  return llvm::Align(size_of(kernel_.buffers[buffer].dtype));
}

// Different buffers never overlap, except that an output may replace an input element by element.
llvm::Instruction* Emitter::tag(llvm::Instruction* access, uint32_t buffer) const {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_[buffer]);
  access->setMetadata(llvm::LLVMContext::MD_noalias, other_scopes_[buffer]);
  return access;
}

llvm::Value* Emitter::from_memory(Value* loaded, uint32_t buffer) {
  if (kernel_.buffers[buffer].dtype != DType::kBool) return loaded;
  return b_.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType()));
}

llvm::Value* Emitter::to_memory(Value* value, uint32_t buffer) {
  if (kernel_.buffers[buffer].dtype != DType::kBool) return value;
  return b_.CreateZExt(value, value->getType()->getWithNewBitWidth(8));
}

// Constant terms of an index become the displacement of the access.
Emitter::Address Emitter::address_of(const Inst& inst) {
  Address address;
  address.buffer = inst.buffer;
  address.value = memory_type(inst.buffer);
  if (inst.op == Op::kLoad && inst.type != kir::type_of(kernel_.buffers[inst.buffer].dtype)) {
    address.value = arithmetic_.type(inst.type);
    address.step = kir::bits(inst.type) / 8;
  }
  kir::Val index = inst.args[0];
  auto is_const = [](kir::Val value) { return value->op == Op::kConst; };
  for (;;) {
    if (index->op == Op::kAdd && is_const(index->args[1])) {
      address.offset += index->args[1]->imm_int;
      index = index->args[0];
    } else if (index->op == Op::kAdd && is_const(index->args[0])) {
      address.offset += index->args[0]->imm_int;
      index = index->args[1];
    } else if (index->op == Op::kSub && is_const(index->args[1])) {
      address.offset -= index->args[1]->imm_int;
      index = index->args[0];
    } else {
      break;
    }
  }
  // What all lanes add moves the base: lanes may then keep indices of 32 bits.
  while (index->op == Op::kAdd && held(index).spread == Spread::kVarying) {
    const size_t same = held(index->args[0]).spread == Spread::kUniform ? 0 : 1;
    const Held& term = held(index->args[same]);
    if (term.spread != Spread::kUniform) break;
    address.moved = address.moved ? b_.CreateAdd(address.moved, term.parts[0]) : term.parts[0];
    index = index->args[1 - same];
  }
  address.index = held(index);
  return address;
}

std::optional<int64_t> Emitter::stride_of(const Address& address) const {
  if (address.index.spread == Spread::kUniform) return 0;
  if (address.index.spread == Spread::kVarying) return std::nullopt;
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(address.index.stride);
  if (!constant) return std::nullopt;
  return constant->getSExtValue();
}

llvm::Value* Emitter::scalar_pointer(const Address& address, int64_t more) {
  llvm::Type* element = memory_type(address.buffer);
  Value* pointer = b_.CreateGEP(element, buffers_[address.buffer], address.index.parts[0]);
  int64_t offset = address.offset + more;
  return offset == 0 ? pointer : b_.CreateGEP(element, pointer, index(offset));
}

llvm::Value* Emitter::lane_pointers(const Address& address, int part) {
  llvm::Type* element = memory_type(address.buffer);
  if (address.index.spread == Spread::kUniform) return splat(scalar_pointer(address, 0));
  if (auto stride = stride_of(address)) {
    // Short offsets from one scalar address: the target can keep them in 32 bits.
    return b_.CreateGEP(element, scalar_pointer(address, 0),
                        iota(b_.getInt64Ty(), int64_t{part} * mode_.lanes, *stride));
  }
  Value* base = buffers_[address.buffer];
  if (address.offset != 0) base = b_.CreateGEP(element, base, index(address.offset));
  if (address.moved) base = b_.CreateGEP(element, base, address.moved);
  return b_.CreateGEP(element, base, vectors(address.index)[static_cast<size_t>(part)]);
}

llvm::Value* Emitter::reverse(Value* vector) {
  llvm::SmallVector<int, 64> order(static_cast<size_t>(mode_.lanes));
  std::iota(order.rbegin(), order.rend(), 0);
  return b_.CreateShuffleVector(vector, order);
}

// The active lanes of a part, null for all of them.
llvm::Value* Emitter::lane_mask(const Values* predicate, int part, bool reversed) {
  Value* mask = mode_.mask;
  if (predicate) {
    Value* own = (*predicate)[static_cast<size_t>(part)];
    mask = mask ? b_.CreateAnd(mask, own) : own;
  }
  return mask && reversed ? reverse(mask) : mask;
}

namespace {

// Whether `value` comes from another loop's variable than `own`, or from memory.
bool varies_outside(kir::Val value, kir::Val own) {
  if (value == own || value->op == Op::kConst || value->op == Op::kDimArg) return false;
  if (value->op == Op::kLoopVar || value->args.empty()) return true;
  return std::any_of(value->args.begin(), value->args.end(),
                     [own](kir::Val arg) { return varies_outside(arg, own); });
}

}  // namespace

void Emitter::prefetch_ahead(const Inst& load, const Address& address) {
  constexpr int64_t kLine = 64;
  const VectorPlan::Ahead& ahead = mode_.ahead;
  const bool scratch = kernel_.buffers[address.buffer].kind == kir::Buffer::Kind::kScratch;
  if (ahead.elements + ahead.bytes == 0 || scratch || stride_of(address) != address.step) return;
  // What every row reads alike stands in the caches.
  if (ahead.elements != 0 && !varies_outside(load.args[0], mode_.var)) return;
  const auto size = static_cast<int64_t>(size_of(kernel_.buffers[address.buffer].dtype));
  const int64_t bytes = size * address.step * mode_.lanes * mode_.parts;
  if (ahead.quarters == 4 || address.step != 1) {
    for (int64_t at = 0; at < bytes; at += kLine) {
      prefetch_line(scalar_pointer(address, ahead.elements + (ahead.bytes + at) / size));
    }
    return;
  }
  if (ahead.quarters == 0) return;
  // Two rows and what is kept of one have to stand in the first cache together.
  constexpr int64_t kFirstCache = 32768;
  const int64_t kept = kernel_.scratch_bytes.is_static() ? kernel_.scratch_bytes.value() : 0;
  const bool near = 2 * size * ahead.elements + kept <= kFirstCache;
  Value* var = held(mode_.var).parts[0];
  Value* share = b_.CreateLShr(b_.CreateMul(var, index(ahead.quarters)), index(2));
  Value* from = b_.CreateGEP(
      memory_type(address.buffer),
      scalar_pointer(address, ahead.elements + ahead.first_quarter * ahead.elements / 4),
      b_.CreateSub(share, var));
  for (int64_t at = 0; at < std::max(kLine, bytes * ahead.quarters / 4); at += kLine) {
    prefetch_line(b_.CreateGEP(b_.getInt8Ty(), from, index(at)),
                  near ? kIntoFirstCache : kIntoSecondCache);
  }
}

void Emitter::prefetch_line(Value* pointer, uint32_t locality) {
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {pointer, b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
}

// Lanes at unrelated addresses are left alone: one hint a lane would cost more than it brings.
void Emitter::emit_prefetch(const Inst& inst) {
  Address address = address_of(inst);
  if (address.index.spread == Spread::kVarying) return;
  int parts = address.index.spread == Spread::kUniform ? 1 : mode_.parts;
  int64_t stride = stride_of(address).value_or(0);
  for (int part = 0; part < parts; ++part) {
    prefetch_line(scalar_pointer(address, stride * part * mode_.lanes),
                  inst.streaming ? kIntoSecondCache : kIntoFirstCache);
  }
}

}  // namespace tenon::codegen
