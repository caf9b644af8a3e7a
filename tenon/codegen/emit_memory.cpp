#include <llvm/IR/Constants.h>

#include <algorithm>
#include <numeric>

#include "tenon/base/error.h"
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

void Emitter::emit_load(const Inst& inst) {
  if (inst.args.size() > 1 && held(inst.args[1]).spread == Spread::kUniform) {
    return emit_load_if_uniform(inst);
  }
  Address address = address_of(inst);
  auto* self = const_cast<Inst*>(&inst);
  if (inst.args.size() == 1) {
    prefetch_ahead(inst, address);
    held_[self] = load(address, nullptr, nullptr);
  } else {
    Values predicate = vectors(inst.args[1]);
    Values other = vectors(inst.args[2]);
    held_[self] = load(address, &predicate, &other);
  }
}

// All lanes agree whether memory is read: a branch.
void Emitter::emit_load_if_uniform(const Inst& inst) {
  Value* condition = held(inst.args[1]).parts[0];
  Address address = address_of(inst);
  bool is_uniform =
      address.index.spread == Spread::kUniform && held(inst.args[2]).spread == Spread::kUniform;
  Values other = is_uniform ? held(inst.args[2]).parts : vectors(inst.args[2]);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* read = llvm::BasicBlock::Create(module_.getContext(), "read", function_);
  auto* next = llvm::BasicBlock::Create(module_.getContext(), "read.next", function_);
  b_.CreateCondBr(condition, read, next);
  b_.SetInsertPoint(read);
  Held loaded = load(address, nullptr, nullptr);
  Values parts = is_uniform ? loaded.parts : vectors(loaded);
  llvm::BasicBlock* after = b_.GetInsertBlock();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  Values result;
  for (size_t k = 0; k < parts.size(); ++k) {
    llvm::PHINode* phi = b_.CreatePHI(parts[k]->getType(), 2);
    phi->addIncoming(other[k], before);
    phi->addIncoming(parts[k], after);
    result.push_back(phi);
  }
  auto* self = const_cast<Inst*>(&inst);
  if (is_uniform) {
    set_uniform(self, result[0]);
  } else {
    set_varying(self, std::move(result));
  }
}

Emitter::Held Emitter::load(const Address& address, const Values* predicate, const Values* other) {
  if (address.index.spread == Spread::kUniform) return load_uniform(address, predicate, other);
  Held result;
  result.spread = Spread::kVarying;
  auto stride = stride_of(address);
  if (stride == address.step || stride == -address.step) {
    result.parts = load_contiguous(address, stride < 0, predicate, other);
  } else {
    result.parts = gather(address, predicate, other);
  }
  return result;
}

Emitter::Held Emitter::load_uniform(const Address& address, const Values* predicate,
                                    const Values* other) {
  auto read = [&] {
    Value* loaded =
        b_.CreateAlignedLoad(address.value, scalar_pointer(address, 0), alignment(address.buffer));
    tag(llvm::cast<llvm::Instruction>(loaded), address.buffer);
    return from_memory(loaded, address.buffer);
  };
  if (!predicate) return Held{Spread::kUniform, {read()}, nullptr};
  Value* wanted = any_active(*predicate);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* then = llvm::BasicBlock::Create(module_.getContext(), "read", function_);
  auto* next = llvm::BasicBlock::Create(module_.getContext(), "read.next", function_);
  b_.CreateCondBr(wanted, then, next);
  b_.SetInsertPoint(then);
  Value* loaded = read();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  llvm::PHINode* value = b_.CreatePHI(loaded->getType(), 2);
  value->addIncoming(llvm::Constant::getNullValue(loaded->getType()), before);
  value->addIncoming(loaded, then);
  Held result{Spread::kVarying, {}, nullptr};
  for (size_t part = 0; part < predicate->size(); ++part) {
    result.parts.push_back(b_.CreateSelect((*predicate)[part], splat(value), (*other)[part]));
  }
  return result;
}

Emitter::Values Emitter::load_contiguous(const Address& address, bool reversed,
                                         const Values* predicate, const Values* other) {
  auto* vector = llvm::FixedVectorType::get(address.value, static_cast<unsigned>(mode_.lanes));
  llvm::Align align = alignment(address.buffer);
  Values result;
  for (int part = 0; part < mode_.parts; ++part) {
    int64_t first = int64_t{part} * mode_.lanes;
    Value* pointer =
        scalar_pointer(address, (reversed ? -(first + mode_.lanes - 1) : first) * address.step);
    Value* mask = lane_mask(predicate, part, reversed);
    llvm::Instruction* loaded = nullptr;
    if (mask) {
      loaded =
          b_.CreateMaskedLoad(vector, pointer, align, mask, llvm::Constant::getNullValue(vector));
    } else {
      loaded = b_.CreateAlignedLoad(vector, pointer, align);
    }
    tag(loaded, address.buffer);
    Value* value = from_memory(reversed ? reverse(loaded) : loaded, address.buffer);
    if (predicate) {
      auto k = static_cast<size_t>(part);
      value = b_.CreateSelect((*predicate)[k], value, (*other)[k]);
    }
    result.push_back(value);
  }
  return result;
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

Emitter::Values Emitter::gather(const Address& address, const Values* predicate,
                                const Values* other) {
  auto* vector = llvm::FixedVectorType::get(address.value, static_cast<unsigned>(mode_.lanes));
  Values result;
  for (int part = 0; part < mode_.parts; ++part) {
    llvm::Instruction* loaded = b_.CreateMaskedGather(
        vector, lane_pointers(address, part), alignment(address.buffer),
        lane_mask(predicate, part, false), llvm::Constant::getNullValue(vector));
    tag(loaded, address.buffer);
    Value* value = from_memory(loaded, address.buffer);
    if (predicate) {
      auto k = static_cast<size_t>(part);
      value = b_.CreateSelect((*predicate)[k], value, (*other)[k]);
    }
    result.push_back(value);
  }
  return result;
}

void Emitter::emit_store(const Inst& inst) {
  Address address = address_of(inst);
  bool has_predicate = inst.args.size() > 2;
  if (has_predicate && held(inst.args[2]).spread == Spread::kUniform) {
    auto* then = llvm::BasicBlock::Create(module_.getContext(), "write", function_);
    auto* next = llvm::BasicBlock::Create(module_.getContext(), "write.next", function_);
    b_.CreateCondBr(held(inst.args[2]).parts[0], then, next);
    b_.SetInsertPoint(then);
    store(address, inst.args[1], nullptr, inst.streaming);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    return;
  }
  if (has_predicate) {
    Values predicate = vectors(inst.args[2]);
    return store(address, inst.args[1], &predicate, false);
  }
  store(address, inst.args[1], nullptr, inst.streaming);
}

void Emitter::store(const Address& address, kir::Val value, const Values* predicate,
                    bool streaming) {
  bool one_place = address.index.spread == Spread::kUniform;
  if (one_place && !predicate && held(value).spread == Spread::kUniform) {
    Value* scalar = to_memory(held(value).parts[0], address.buffer);
    tag(b_.CreateAlignedStore(scalar, scalar_pointer(address, 0), alignment(address.buffer)),
        address.buffer);
    return;
  }
  Values values;
  for (Value* part : vectors(value)) values.push_back(to_memory(part, address.buffer));
  auto stride = stride_of(address);
  if (stride == 1 || stride == -1) {
    store_contiguous(address, stride == -1, std::move(values), predicate, streaming);
  } else {
    scatter(address, values, predicate);
  }
}

void Emitter::store_contiguous(const Address& address, bool reversed, Values values,
                               const Values* predicate, bool streaming) {
  auto bytes = values[0]->getType()->getPrimitiveSizeInBits().getFixedValue() / 8;
  if (streaming && !reversed && !predicate && !mode_.mask && !target_.is_arm && bytes >= 16) {
    return store_streaming(address, values);
  }
  llvm::Align align = alignment(address.buffer);
  for (int part = 0; part < mode_.parts; ++part) {
    int64_t first = int64_t{part} * mode_.lanes;
    Value* value = values[static_cast<size_t>(part)];
    if (reversed) value = reverse(value);
    Value* pointer = scalar_pointer(address, reversed ? -(first + mode_.lanes - 1) : first);
    Value* mask = lane_mask(predicate, part, reversed);
    llvm::Instruction* stored = nullptr;
    if (mask) {
      stored = b_.CreateMaskedStore(value, pointer, align, mask);
    } else {
      stored = b_.CreateAlignedStore(value, pointer, align);
    }
    tag(stored, address.buffer);
  }
}

// emit(true) where `condition` holds, else emit(false).
void Emitter::either_way(Value* condition, const std::function<void(bool)>& emit) {
  llvm::LLVMContext& context = module_.getContext();
  auto* yes = llvm::BasicBlock::Create(context, "yes", function_);
  auto* no = llvm::BasicBlock::Create(context, "no", function_);
  auto* next = llvm::BasicBlock::Create(context, "next", function_);
  b_.CreateCondBr(condition, yes, no);
  for (auto* block : {yes, no}) {
    b_.SetInsertPoint(block);
    emit(block == yes);
    b_.CreateBr(next);
  }
  b_.SetInsertPoint(next);
}

// Stores past the caches need whole vectors at aligned addresses. The address advances by whole
// vectors, so that the branch goes the same way all through a loop.
void Emitter::store_streaming(const Address& address, const Values& values) {
  wrote_past_caches_ = true;
  auto bytes =
      std::min<uint64_t>(values[0]->getType()->getPrimitiveSizeInBits().getFixedValue() / 8,
                         static_cast<uint64_t>(target_.vector_bits) / 8);
  Value* where = b_.CreatePtrToInt(scalar_pointer(address, 0), b_.getInt64Ty());
  Value* is_aligned =
      b_.CreateICmpEQ(b_.CreateAnd(where, index(static_cast<int64_t>(bytes) - 1)), index(0));
  either_way(is_aligned, [&](bool aligned) {
    for (int part = 0; part < mode_.parts; ++part) {
      llvm::Align align = aligned ? llvm::Align(bytes) : alignment(address.buffer);
      auto* stored =
          b_.CreateAlignedStore(values[static_cast<size_t>(part)],
                                scalar_pointer(address, int64_t{part} * mode_.lanes), align);
      tag(stored, address.buffer);
      if (aligned) set_streaming(stored);
    }
  });
}

void Emitter::set_streaming(llvm::Instruction* store) {
  auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(module_.getContext(), one));
}

void Emitter::scatter(const Address& address, const Values& values, const Values* predicate) {
  for (int part = 0; part < mode_.parts; ++part) {
    tag(b_.CreateMaskedScatter(values[static_cast<size_t>(part)], lane_pointers(address, part),
                               alignment(address.buffer), lane_mask(predicate, part, false)),
        address.buffer);
  }
}

// Lanes at unrelated addresses are left alone: one hint a lane would cost more than it brings.
void Emitter::emit_prefetch(const Inst& inst) {
  Address address = address_of(inst);
  if (address.index.spread == Spread::kVarying) return;
  int parts = address.index.spread == Spread::kUniform ? 1 : mode_.parts;
  int64_t stride = stride_of(address).value_or(0);
  for (int part = 0; part < parts; ++part) {
    prefetch_line(scalar_pointer(address, stride * part * mode_.lanes));
  }
}

}  // namespace tenon::codegen
