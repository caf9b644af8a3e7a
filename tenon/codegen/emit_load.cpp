#include <llvm/IR/Constants.h>

#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::Inst;

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

}  // namespace tenon::codegen
