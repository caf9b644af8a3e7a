#include "tenon/codegen/emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::codegen {

using kir::Inst;
using kir::Op;

Emitter::Emitter(llvm::Module& module, const Target& target, const kir::Kernel& kernel)
    : module_(module),
      target_(target),
      kernel_(kernel),
      b_(module.getContext()),
      arithmetic_(b_, target) {}

void Emitter::emit(const std::string& function_name) {
  begin_function(function_name);
  emit_block(kernel_.body);
  if (uses_tiles_) {
    configure_tiles(&*function_->getEntryBlock().getFirstNonPHIOrDbg());
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  }
  if (wrote_past_caches_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b_.CreateRetVoid();
}

void Emitter::begin_function(const std::string& name) {
  llvm::Type* pointer = b_.getPtrTy();
  auto* signature =
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(signature, llvm::GlobalValue::ExternalLinkage, name, module_);
  function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  function_->addFnAttr("target-cpu", target_.cpu);
  function_->addFnAttr("target-features", target_.features);
  function_->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
  Value* args = function_->getArg(0);
  begin_ = function_->getArg(1);
  end_ = function_->getArg(2);

  auto field = [&](Value* base, int64_t k, llvm::Type* type) {
    return b_.CreateAlignedLoad(
        type, b_.CreateConstGEP1_64(b_.getInt64Ty(), base, static_cast<uint64_t>(k)),
        llvm::Align(8));
  };
  Value* pointers = field(args, 0, pointer);
  Value* dims = field(args, 1, pointer);
  Value* scratch = field(args, 2, pointer);
  status_ = field(args, 3, pointer);
  for (size_t k = 0; k < kernel_.dims.size(); ++k) {
    dims_.push_back(field(dims, static_cast<int64_t>(k), b_.getInt64Ty()));
  }
  int64_t position = 0;
  for (const kir::Buffer& buffer : kernel_.buffers) {
    if (buffer.kind == kir::Buffer::Kind::kArg) {
      buffers_.push_back(field(pointers, position++, pointer));
      continue;
    }
    Value* offset = nullptr;
    if (buffer.offset.is_static()) {
      offset = index(buffer.offset.value());
    } else {
      auto found = std::find(kernel_.dims.begin(), kernel_.dims.end(), buffer.offset);
      if (found == kernel_.dims.end()) {
        throw InternalError(
            fmt::format("codegen: scratch buffer {} lies at {}, which is not among "
                        "the kernel's dims",
                        buffer.name, buffer.offset.str()));
      }
      offset = dims_[static_cast<size_t>(found - kernel_.dims.begin())];
    }
    buffers_.push_back(b_.CreateGEP(b_.getInt8Ty(), scratch, offset));
  }

  llvm::MDBuilder metadata(module_.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kernel");
  std::vector<llvm::Metadata*> scopes;
  for (size_t k = 0; k <= buffers_.size(); ++k) {
    scopes.push_back(metadata.createAnonymousAliasScope(domain));
  }
  for (llvm::Metadata* scope : scopes) {
    std::vector<llvm::Metadata*> others;
    std::copy_if(scopes.begin(), scopes.end(), std::back_inserter(others),
                 [&](llvm::Metadata* other) { return other != scope; });
    own_scope_.push_back(llvm::MDNode::get(module_.getContext(), {scope}));
    other_scopes_.push_back(llvm::MDNode::get(module_.getContext(), others));
  }
}

void Emitter::emit_block(const kir::Block& block) {
  for (const Inst* inst : block.insts) emit_inst(*inst);
}

void Emitter::emit_inst(const Inst& inst) {
  auto* self = const_cast<Inst*>(&inst);
  switch (inst.op) {
    case Op::kConst: return set_uniform(self, arithmetic_.constant(inst));
    case Op::kDimArg: return set_uniform(self, dims_[static_cast<size_t>(inst.imm_int)]);
    case Op::kBegin: return set_uniform(self, begin_);
    case Op::kEnd: return set_uniform(self, end_);
    case Op::kLoopVar:
    case Op::kCarried:
    case Op::kLoopResult: return;  // held since their loop was emitted
    case Op::kLoad: return emit_load(inst);
    case Op::kStore: return emit_store(inst);
    case Op::kPrefetch: return emit_prefetch(inst);
    case Op::kPanelDot: return emit_panel_dot(inst);
    case Op::kTranspose: return emit_transpose(inst);
    case Op::kCheck: return emit_check(inst);
    case Op::kAny: return emit_any(inst);
    case Op::kTable: return emit_table(inst);
    case Op::kFor: return emit_for(inst);
    case Op::kIf: return emit_if(inst);
    default: return emit_pure(inst);
  }
}

const Emitter::Held& Emitter::held(kir::Val value) const {
  auto found = held_.find(value);
  if (found == held_.end()) {
    throw InternalError(
        fmt::format("codegen: kernel {}: value %{} ({}) is used before it is "
                    "computed",
                    kernel_.name, value->id, name(value->op)));
  }
  return found->second;
}

void Emitter::set_uniform(kir::Val value, Value* scalar) {
  held_[value] = Held{Spread::kUniform, {scalar}, nullptr};
}

void Emitter::set_varying(kir::Val value, Values parts) {
  held_[value] = Held{Spread::kVarying, std::move(parts), nullptr};
}

llvm::Value* Emitter::uniform(kir::Val value, const char* what) const {
  const Held& h = held(value);
  if (h.spread != Spread::kUniform) {
    throw InternalError(
        fmt::format("codegen: kernel {}: {} %{} differs between the lanes of a "
                    "vector loop",
                    kernel_.name, what, value->id));
  }
  return h.parts[0];
}

llvm::Value* Emitter::splat(Value* scalar) {
  return b_.CreateVectorSplat(static_cast<unsigned>(mode_.lanes), scalar);
}

llvm::Constant* Emitter::iota(llvm::Type* element, int64_t first, int64_t stride) {
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int k = 0; k < mode_.lanes; ++k) {
    auto value = static_cast<uint64_t>(first + k) * static_cast<uint64_t>(stride);
    lanes.push_back(llvm::ConstantInt::get(element, value, true));
  }
  return llvm::ConstantVector::get(lanes);
}

Emitter::Values Emitter::vectors(kir::Val value) { return vectors(held(value)); }

Emitter::Values Emitter::vectors(const Held& h) {
  if (h.spread == Spread::kVarying) return h.parts;
  Values result;
  if (h.spread == Spread::kUniform) {
    result.assign(static_cast<size_t>(mode_.parts), splat(h.parts[0]));
    return result;
  }
  llvm::Type* element = h.parts[0]->getType();
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(h.stride);
  for (int part = 0; part < mode_.parts; ++part) {
    Value* steps = constant ? iota(element, part * mode_.lanes, constant->getSExtValue())
                            : b_.CreateMul(iota(element, part * mode_.lanes, 1), splat(h.stride));
    result.push_back(b_.CreateAdd(splat(h.parts[0]), steps));
  }
  return result;
}

void Emitter::emit_pure(const Inst& inst) {
  auto* self = const_cast<Inst*>(&inst);
  bool is_uniform = std::all_of(inst.args.begin(), inst.args.end(),
                                [&](kir::Val arg) { return held(arg).spread == Spread::kUniform; });
  if (is_uniform) {
    Values args;
    for (kir::Val arg : inst.args) args.push_back(held(arg).parts[0]);
    return set_uniform(self, arithmetic_.emit(inst, args));
  }
  if (emit_affine(inst)) return;
  std::vector<Values> args;
  for (kir::Val arg : inst.args) args.push_back(vectors(arg));
  bool divides =
      inst.op == Op::kSDiv || inst.op == Op::kUDiv || inst.op == Op::kSRem || inst.op == Op::kURem;
  Values result;
  for (size_t part = 0; part < static_cast<size_t>(mode_.parts); ++part) {
    Values operands;
    for (const Values& arg : args) operands.push_back(arg[part]);
    // What inactive lanes hold must not trap.
    if (divides && mode_.mask && !llvm::isa<llvm::Constant>(operands[1])) {
      operands[1] = b_.CreateSelect(mode_.mask, operands[1],
                                    llvm::ConstantInt::get(operands[1]->getType(), 1));
    }
    result.push_back(arithmetic_.emit(inst, operands));
  }
  set_varying(self, std::move(result));
}

// Integers that grow by one stride from lane to lane stay scalars until something needs them all.
bool Emitter::emit_affine(const Inst& inst) {
  bool foldable = kir::is_int(inst.type) && inst.type != kir::Type::kI1 &&
                  (inst.op == Op::kAdd || inst.op == Op::kSub || inst.op == Op::kMul ||
                   inst.op == Op::kNeg || inst.op == Op::kShl || inst.op == Op::kIntTrunc);
  if (!foldable) return false;
  for (kir::Val arg : inst.args) {
    if (held(arg).spread == Spread::kVarying) return false;
  }
  const Held& a = held(inst.args[0]);
  const Held* b = inst.args.size() > 1 ? &held(inst.args[1]) : nullptr;
  bool b_varies = b && b->spread == Spread::kAffine;
  if (inst.op == Op::kMul && b_varies && a.spread == Spread::kAffine) return false;
  if (inst.op == Op::kShl && b_varies) return false;

  llvm::Type* type = arithmetic_.type(inst.type);
  auto stride = [&](const Held& h) {
    return h.spread == Spread::kAffine ? h.stride
                                       : llvm::ConstantInt::get(h.parts[0]->getType(), 0);
  };
  Value* step = nullptr;
  switch (inst.op) {
    case Op::kAdd: step = b_.CreateAdd(stride(a), stride(*b)); break;
    case Op::kSub: step = b_.CreateSub(stride(a), stride(*b)); break;
    case Op::kNeg: step = b_.CreateNeg(stride(a)); break;
    case Op::kShl: step = b_.CreateShl(stride(a), b->parts[0]); break;
    case Op::kIntTrunc: step = b_.CreateTrunc(stride(a), type); break;
    default:
      step = b_varies ? b_.CreateMul(a.parts[0], b->stride) : b_.CreateMul(a.stride, b->parts[0]);
      break;
  }
  Values args{a.parts[0]};
  if (b) args.push_back(b->parts[0]);
  Value* first = arithmetic_.emit(inst, args);
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(step);
  auto* self = const_cast<Inst*>(&inst);
  if (constant && constant->isZero()) {
    set_uniform(self, first);
  } else {
    held_[self] = Held{Spread::kAffine, {first}, step};
  }
  return true;
}

llvm::Value* Emitter::any_active(const Values& conditions) {
  Value* any = nullptr;
  for (Value* condition : conditions) {
    any = any ? b_.CreateOr(any, condition) : condition;
  }
  if (mode_.mask) any = b_.CreateAnd(any, mode_.mask);
  return b_.CreateOrReduce(any);
}

void Emitter::emit_check(const Inst& inst) {
  Value* failed = nullptr;
  if (held(inst.args[0]).spread == Spread::kUniform) {
    failed = b_.CreateNot(held(inst.args[0]).parts[0]);
  } else {
    Values wrong;
    for (Value* part : vectors(inst.args[0])) wrong.push_back(b_.CreateNot(part));
    failed = any_active(wrong);
  }
  auto* report = llvm::BasicBlock::Create(module_.getContext(), "check.failed", function_);
  auto* next = llvm::BasicBlock::Create(module_.getContext(), "check.next", function_);
  b_.CreateCondBr(failed, report, next,
                  llvm::MDBuilder(module_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(report);
  auto* store = b_.CreateAlignedStore(index(inst.imm_int), status_, llvm::Align(8));
  store->setAtomic(llvm::AtomicOrdering::Monotonic);
  tag(store, static_cast<uint32_t>(buffers_.size()));
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void Emitter::emit_any(const Inst& inst) {
  const Held& condition = held(inst.args[0]);
  bool is_uniform = condition.spread == Spread::kUniform;
  set_uniform(const_cast<Inst*>(&inst),
              is_uniform ? condition.parts[0] : any_active(vectors(condition)));
}

void Emitter::emit_if(const Inst& inst) {
  Value* condition = uniform(inst.args[0], "the condition");
  auto* then = llvm::BasicBlock::Create(module_.getContext(), "then", function_);
  auto* next = llvm::BasicBlock::Create(module_.getContext(), "endif", function_);
  b_.CreateCondBr(condition, then, next);
  b_.SetInsertPoint(then);
  emit_block(inst.loop->body);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

}  // namespace tenon::codegen
