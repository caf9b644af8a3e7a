#include "tenon/codegen/divergence.h"

#include <algorithm>

namespace tenon::codegen {

using kir::Inst;
using kir::Op;

Divergence::Divergence(const Inst& loop) {
  spread_[loop.loop->var] = Spread::kAffine;
  for (const kir::CarriedVar& carried : loop.loop->carried) {
    if (carried.combine != kir::Combine::kNone) spread_[carried.param] = Spread::kVarying;
  }
  do {
    changed_ = false;
    visit(loop.loop->body);
  } while (changed_);
}

void Divergence::raise(kir::Val value, Spread spread) {
  if (spread <= of(value)) return;
  spread_[value] = spread;
  changed_ = true;
}

void Divergence::visit(const kir::Block& block) {
  for (const Inst* inst : block.insts) {
    if (inst->loop) {
      visit_loop(*inst);
    } else if (inst->op != Op::kLoopResult) {
      raise(const_cast<Inst*>(inst), result(*inst));
    }
  }
}

void Divergence::visit_loop(const Inst& inst) {
  for (const kir::CarriedVar& carried : inst.loop->carried) {
    bool uniform = of(carried.init) == Spread::kUniform && of(carried.next) == Spread::kUniform;
    if (uniform) continue;
    raise(carried.param, Spread::kVarying);
    raise(carried.result, Spread::kVarying);
  }
  visit(inst.loop->body);
}

Spread Divergence::result(const Inst& inst) const {
  if (inst.op == Op::kAny) return Spread::kUniform;
  Spread widest = Spread::kUniform;
  for (kir::Val arg : inst.args) widest = std::max(widest, of(arg));
  if (widest == Spread::kUniform || !kir::is_int(inst.type)) {
    return widest == Spread::kUniform ? Spread::kUniform : Spread::kVarying;
  }
  if (widest == Spread::kVarying) return Spread::kVarying;
  switch (inst.op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kNeg:
    case Op::kIntTrunc: return inst.type == kir::Type::kI1 ? Spread::kVarying : Spread::kAffine;
    case Op::kMul:
      return of(inst.args[0]) == Spread::kUniform || of(inst.args[1]) == Spread::kUniform
                 ? Spread::kAffine
                 : Spread::kVarying;
    case Op::kShl: return of(inst.args[1]) == Spread::kUniform ? Spread::kAffine : Spread::kVarying;
    default: return Spread::kVarying;
  }
}

}  // namespace tenon::codegen
