#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>

#include "tenon/base/error.h"
#include "tenon/codegen/emitter.h"

namespace tenon::codegen {

using kir::CarriedVar;
using kir::Combine;
using kir::Inst;

Emitter::Values Emitter::counted_loop(Value* lo, Value* hi, int64_t step, const Values& init,
                                      const LoopBody& body, bool rare) {
  llvm::LLVMContext& context = module_.getContext();
  // Code that hardly ever runs stands apart and takes no registers from the rest.
  llvm::MDNode* weights = rare ? llvm::MDBuilder(context).createBranchWeights(1, 1 << 20) : nullptr;
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(context, "loop", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(lo, hi), loop, after, weights);

  b_.SetInsertPoint(loop);
  llvm::PHINode* var = b_.CreatePHI(b_.getInt64Ty(), 2);
  var->addIncoming(lo, before);
  llvm::SmallVector<llvm::PHINode*, 32> phis;
  Values carried;
  for (Value* value : init) {
    phis.push_back(b_.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    carried.push_back(phis.back());
  }
  Values next = body(var, carried);
  Value* following = b_.CreateAdd(var, index(step), "", false, true);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(following, hi), loop, after, weights);
  var->addIncoming(following, latch);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(next[k], latch);

  b_.SetInsertPoint(after);
  Values results;
  for (size_t k = 0; k < init.size(); ++k) {
    llvm::PHINode* result = b_.CreatePHI(init[k]->getType(), 2);
    result->addIncoming(init[k], before);
    result->addIncoming(next[k], latch);
    results.push_back(result);
  }
  return results;
}

void Emitter::emit_for(const Inst& inst) {
  if (inst.loop->spec.vector && !mode_.inside_vector_loop) return emit_vector_loop(inst);
  emit_serial_loop(inst);
}

// Inside a vector loop a carried value is a scalar when all lanes agree, else one vector a part.
void Emitter::emit_serial_loop(const Inst& inst) {
  const kir::Loop& loop = *inst.loop;
  Mode inner = mode_;
  inner.ahead = {};
  ModeScope scope(*this, inner);
  auto is_varying = [&](const CarriedVar& carried) {
    return mode_.lanes != 0 && mode_.divergence->of(carried.param) == Spread::kVarying;
  };
  auto flatten = [&](const CarriedVar& carried, kir::Val value, Values& out) {
    if (is_varying(carried)) {
      out.append(vectors(value));
    } else {
      out.push_back(uniform(value, "the carried value"));
    }
  };
  auto unflatten = [&](const CarriedVar& carried, kir::Val value, const Values& in, size_t& at) {
    size_t count = is_varying(carried) ? static_cast<size_t>(mode_.parts) : 1;
    Values parts(in.begin() + static_cast<ptrdiff_t>(at),
                 in.begin() + static_cast<ptrdiff_t>(at + count));
    at += count;
    if (is_varying(carried)) {
      set_varying(value, std::move(parts));
    } else {
      set_uniform(value, parts[0]);
    }
  };

  Values init;
  for (const CarriedVar& carried : loop.carried) flatten(carried, carried.init, init);
  Values results = counted_loop(
      uniform(inst.args[0], "the loop bound"), uniform(inst.args[1], "the loop bound"),
      loop.spec.step, init,
      [&](Value* var, const Values& values) {
        set_uniform(loop.var, var);
        size_t at = 0;
        for (const CarriedVar& carried : loop.carried)
          unflatten(carried, carried.param, values, at);
        emit_block(loop.body);
        Values next;
        for (const CarriedVar& carried : loop.carried) flatten(carried, carried.next, next);
        return next;
      },
      loop.spec.rare);
  size_t at = 0;
  for (const CarriedVar& carried : loop.carried) unflatten(carried, carried.result, results, at);
}

void Emitter::emit_vector_loop(const Inst& inst) {
  const kir::Loop& loop = *inst.loop;
  Divergence divergence(inst);
  VectorPlan plan = plan_vector_loop(inst, divergence, kernel_, target_);
  Value* lo = uniform(inst.args[0], "the loop bound");
  Value* hi = uniform(inst.args[1], "the loop bound");
  Mode wide{plan.lanes, plan.interleave, nullptr, &divergence, true, loop.var};
  Mode single = wide;
  single.parts = 1;
  wide.ahead = plan.ahead;
  int64_t block = int64_t{plan.lanes} * plan.interleave;

  Values state;
  Value* reached = lo;
  {
    ModeScope scope(*this, wide);
    state = neutral_values(loop);
    if (!plan.trip || *plan.trip >= block) {
      if (plan.tail == VectorPlan::Tail::kNone) {
        reached = hi;
      } else {
        Value* span =
            b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(hi, lo), index(0));
        reached = b_.CreateAdd(lo, b_.CreateAnd(span, index(-block)));
      }
      state = vector_section(inst, lo, reached, state, false);
    }
    state = fold_parts(loop, state, plan.interleave);
  }
  ModeScope scope(*this, single);
  if (plan.tail == VectorPlan::Tail::kVectors || plan.tail == VectorPlan::Tail::kMasked) {
    state = vector_section(inst, reached, hi, state, plan.tail == VectorPlan::Tail::kMasked);
  }
  state = fold_lanes(loop, state);
  if (plan.tail == VectorPlan::Tail::kScalar) {
    ModeScope scalar(*this, Mode{.inside_vector_loop = true});
    state = counted_loop(reached, hi, 1, state, [&](Value* var, const Values& values) {
      set_uniform(loop.var, var);
      for (size_t k = 0; k < values.size(); ++k) set_uniform(loop.carried[k].param, values[k]);
      emit_block(loop.body);
      Values next;
      for (const CarriedVar& carried : loop.carried) {
        next.push_back(uniform(carried.next, "the carried value"));
      }
      return next;
    });
  }
  for (size_t k = 0; k < state.size(); ++k) set_uniform(loop.carried[k].result, state[k]);
}

Emitter::Values Emitter::vector_section(const Inst& inst, Value* lo, Value* hi,
                                        const Values& carried, bool masked) {
  int64_t step = int64_t{mode_.lanes} * mode_.parts;
  return counted_loop(lo, hi, step, carried, [&](Value* var, const Values& values) {
    Mode mode = mode_;
    if (masked) mode.mask = remaining_mask(var, hi);
    ModeScope scope(*this, mode);
    return vector_body(inst, var, values);
  });
}

// One round of the body. Carried values that are combined hold one vector a part, others a scalar.
Emitter::Values Emitter::vector_body(const Inst& inst, Value* var, const Values& carried) {
  const kir::Loop& loop = *inst.loop;
  held_[loop.var] = Held{Spread::kAffine, {var}, index(1)};
  size_t at = 0;
  for (const CarriedVar& one : loop.carried) {
    if (one.combine == Combine::kNone) {
      set_uniform(one.param, carried[at++]);
      continue;
    }
    auto first = carried.begin() + static_cast<ptrdiff_t>(at);
    set_varying(one.param, Values(first, first + mode_.parts));
    at += static_cast<size_t>(mode_.parts);
  }
  emit_block(loop.body);
  Values next;
  for (const CarriedVar& one : loop.carried) {
    if (one.combine == Combine::kNone) {
      next.push_back(uniform(one.next, "the carried value"));
      continue;
    }
    Values parts = vectors(one.next);
    if (mode_.mask) parts[0] = b_.CreateSelect(mode_.mask, parts[0], held(one.param).parts[0]);
    next.append(parts);
  }
  return next;
}

Emitter::Values Emitter::neutral_values(const kir::Loop& loop) {
  Values values;
  for (const CarriedVar& carried : loop.carried) {
    if (carried.combine == Combine::kNone) {
      values.push_back(uniform(carried.init, "the carried value"));
      continue;
    }
    Value* neutral = splat(arithmetic_.neutral(carried.combine, carried.param->type));
    values.append(static_cast<size_t>(mode_.parts), neutral);
  }
  return values;
}

Emitter::Values Emitter::fold_parts(const kir::Loop& loop, const Values& carried, int parts) {
  Values result;
  size_t at = 0;
  for (const CarriedVar& one : loop.carried) {
    if (one.combine == Combine::kNone) {
      result.push_back(carried[at++]);
      continue;
    }
    auto first = carried.begin() + static_cast<ptrdiff_t>(at);
    Values tree(first, first + parts);
    for (; tree.size() > 1; tree.resize(tree.size() / 2)) {
      size_t half = tree.size() / 2;
      for (size_t k = 0; k < half; ++k) {
        tree[k] = arithmetic_.combine(one.combine, tree[k], tree[k + half]);
      }
    }
    result.push_back(tree[0]);
    at += static_cast<size_t>(parts);
  }
  return result;
}

// Halves the vectors until one lane is left, then takes in the initial value.
Emitter::Values Emitter::fold_lanes(const kir::Loop& loop, const Values& carried) {
  Values result;
  for (size_t k = 0; k < loop.carried.size(); ++k) {
    Combine combine = loop.carried[k].combine;
    Value* value = carried[k];
    if (combine != Combine::kNone) {
      for (int half = mode_.lanes / 2; half > 0; half /= 2) {
        llvm::SmallVector<int, 32> low;
        llvm::SmallVector<int, 32> high;
        for (int lane = 0; lane < half; ++lane) {
          low.push_back(lane);
          high.push_back(lane + half);
        }
        value = arithmetic_.combine(combine, b_.CreateShuffleVector(value, low),
                                    b_.CreateShuffleVector(value, high));
      }
      value = arithmetic_.combine(combine, uniform(loop.carried[k].init, "the initial value"),
                                  b_.CreateExtractElement(value, uint64_t{0}));
    }
    result.push_back(value);
  }
  return result;
}

// Lane k is active when var + k < hi; at least lane 0 is.
llvm::Value* Emitter::remaining_mask(Value* var, Value* hi) {
  auto lanes = static_cast<unsigned>(mode_.lanes);
  Value* left =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(hi, var), index(mode_.lanes));
  if (target_.has_masks && lanes >= 8) {
    llvm::Type* word = b_.getIntNTy(lanes);
    Value* idle = b_.CreateSub(index(mode_.lanes), left);
    Value* bits =
        b_.CreateLShr(llvm::ConstantInt::getAllOnesValue(word), b_.CreateTrunc(idle, word));
    return b_.CreateBitCast(bits, llvm::FixedVectorType::get(b_.getInt1Ty(), lanes));
  }
  llvm::Type* narrow = b_.getInt32Ty();
  return b_.CreateICmpULT(iota(narrow, 0, 1), splat(b_.CreateTrunc(left, narrow)));
}

}  // namespace tenon::codegen
