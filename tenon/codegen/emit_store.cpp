#include <llvm/IR/Constants.h>

#include <algorithm>

#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;

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

}  // namespace tenon::codegen
