#include "tenon/codegen/vector_plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace tenon::codegen {
namespace {

using kir::Inst;
using kir::Op;
using kir::Type;

using Visit = std::function<void(const Inst&)>;

void for_each_inst(const kir::Block& block, const Visit& visit) {
  for (const Inst* inst : block.insts) {
    visit(*inst);
    if (inst->loop) for_each_inst(inst->loop->body, visit);
  }
}

// Without what hardly ever runs.
void for_each_usual(const kir::Block& block, const Visit& visit) {
  for (const Inst* inst : block.insts) {
    visit(*inst);
    if (inst->loop && !inst->loop->spec.rare) for_each_usual(inst->loop->body, visit);
  }
}

bool touches_memory(Op op) { return op == Op::kLoad || op == Op::kStore || op == Op::kPrefetch; }

// What the choice rests on, gathered in one walk.
struct Survey {
  int widest = 0;              // bits of the widest element computed in lanes
  int work = 0;                // varying instructions, weighted
  int path = 0;                // cycles of the longest chain of them
  int live = 0;                // the most values that are held at one time
  int streams = 0;             // contiguous loads of the loop's own body
  int carried = 0;             // varying carried values, of this loop and of loops inside
  bool narrow_memory = false;  // a varying access of less than 32 bits, or by separate addresses
};

class Surveyor {
 public:
  Surveyor(const Inst& loop, const Divergence& divergence, const kir::Kernel& kernel)
      : divergence_(divergence), kernel_(kernel) {
    find_data(loop);
    find_seldom(loop.loop->body);
    for (const kir::CarriedVar& carried : loop.loop->carried) count_carried(carried);
    for_each_inst(loop.loop->body, [&](const Inst& inst) {
      if (touches_memory(inst.op)) count_memory(inst);
    });
    for_each_usual(loop.loop->body, [&](const Inst& inst) { count(inst); });
    if (survey_.widest == 0) survey_.widest = 32;
    measure_path(loop.loop->body);
    measure_live(loop.loop->body);
    for (const Inst* inst : loop.loop->body.insts) {
      const bool load = inst->op == Op::kLoad && inst->args.size() == 1;
      if (load && divergence_.of(inst->args[0]) == Spread::kAffine) ++survey_.streams;
    }
  }
  Survey result() const { return survey_; }

 private:
  bool is_varying(kir::Val value) const { return divergence_.of(value) == Spread::kVarying; }

  // Values that are used as something else than an address: 64-bit integers that only address
  // memory do not narrow the loop, they take two registers instead.
  void find_data(const Inst& loop) {
    std::vector<const Inst*> order;
    for_each_inst(loop.loop->body, [&](const Inst& inst) { order.push_back(&inst); });
    for (const kir::CarriedVar& carried : loop.loop->carried) data_.insert(carried.next);
    for (const Inst* inst : order) {
      if (!inst->loop) continue;
      for (const kir::CarriedVar& carried : inst->loop->carried) {
        data_.insert(carried.init);
        data_.insert(carried.next);
      }
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Inst& inst = **it;
      bool memory = touches_memory(inst.op);
      bool address_only = inst.type == Type::kI64 && !memory && !data_.contains(&inst);
      if (address_only) continue;
      for (size_t k = memory ? 1 : 0; k < inst.args.size(); ++k) data_.insert(inst.args[k]);
    }
  }

  // What runs once for many rounds of a loop inside, as the sum of the sums of runs, does not
  // narrow the loop either.
  void find_seldom(const kir::Block& body) {
    for (const Inst* inst : body.insts) {
      if (inst->op == Op::kLoopResult && seldom_.contains(inst->args[0])) seldom_.insert(inst);
      if (!inst->loop) continue;
      find_seldom(inst->loop->body);
      const std::vector<Inst*>& inside = inst->loop->body.insts;
      const bool has_loop = std::any_of(inside.begin(), inside.end(), [](const Inst* one) {
        return one->op == Op::kFor && !one->loop->spec.rare;
      });
      if (inst->loop->spec.step == 1 || !has_loop) continue;
      seldom_.insert(inst);
      for (const Inst* one : inside) {
        if (!one->loop && one->op != Op::kLoopResult) seldom_.insert(one);
      }
      for (const kir::CarriedVar& carried : inst->loop->carried) seldom_.insert(carried.param);
    }
  }

  void widen(Type type) {
    if (type != Type::kI1 && type != Type::kVoid) {
      survey_.widest = std::max(survey_.widest, kir::bits(type));
    }
  }

  void count_carried(const kir::CarriedVar& carried) {
    if (!is_varying(carried.param)) return;
    ++survey_.carried;
    if (!seldom_.contains(carried.param)) widen(carried.param->type);
  }

  void count(const Inst& inst) {
    if (inst.loop) {
      if (inst.loop->spec.rare) return;
      for (const kir::CarriedVar& carried : inst.loop->carried) count_carried(carried);
      return;
    }
    if (!is_varying(const_cast<Inst*>(&inst)) && inst.op != Op::kStore) return;
    survey_.work += weight(inst.op);
    if (seldom_.contains(&inst)) return;
    bool wide_address = inst.type == Type::kI64 && (inst.op != Op::kLoad || !data_.contains(&inst));
    if (!wide_address) widen(inst.type);
    if (inst.op == Op::kCmp || inst.op == Op::kFTrunc || inst.op == Op::kFToS ||
        inst.op == Op::kFToU) {
      const bool counts = inst.args[0]->type != Type::kI64 && !seldom_.contains(inst.args[0]);
      if (counts) widen(inst.args[0]->type);
    }
  }

  void count_memory(const Inst& inst) {
    Spread spread = divergence_.of(inst.args[0]);
    if (inst.op == Op::kPrefetch) return;
    if (inst.op == Op::kStore) widen(inst.args[1]->type);
    const size_t bytes = inst.op == Op::kLoad ? static_cast<size_t>(kir::bits(inst.type)) / 8
                                              : size_of(kernel_.buffers[inst.buffer].dtype);
    if (spread == Spread::kVarying || (spread != Spread::kUniform && bytes < 4)) {
      survey_.narrow_memory = true;
    }
  }

  static int weight(Op op) {
    switch (op) {
      case Op::kDiv:
      case Op::kSqrt:
      case Op::kSDiv:
      case Op::kUDiv:
      case Op::kSRem:
      case Op::kURem: return 8;
      case Op::kFTrunc:
      case Op::kFToS:
      case Op::kFToU:
      case Op::kFMin:
      case Op::kFMax: return 3;
      case Op::kScale: return 2;
      default: return 1;
    }
  }

  static int latency(Op op) {
    switch (op) {
      case Op::kDiv:
      case Op::kSqrt: return 16;
      case Op::kLoad: return 8;
      case Op::kAnd:
      case Op::kOr:
      case Op::kXor:
      case Op::kShl:
      case Op::kLShr:
      case Op::kAShr:
      case Op::kBitcast:
      case Op::kAbs:
      case Op::kNeg:
      case Op::kCopySign:
      case Op::kSelect: return 1;
      default: return 4 * weight(op);
    }
  }

  // When each value is ready, in cycles from the start of a round.
  void measure_path(const kir::Block& body) {
    for (const Inst* inst : body.insts) {
      int start = 0;
      for (kir::Val arg : inst->args) start = std::max(start, ready_[arg]);
      if (inst->loop) {
        measure_loop(*inst->loop);
      } else if (inst->op != Op::kLoopResult && is_varying(const_cast<Inst*>(inst))) {
        ready_[inst] = start + latency(inst->op);
        survey_.path = std::max(survey_.path, ready_[inst]);
      }
    }
  }

  void measure_loop(const kir::Loop& loop) {
    for (const kir::CarriedVar& carried : loop.carried) {
      ready_[carried.result] = ready_[carried.param] = ready_[carried.init];
    }
    if (loop.spec.rare) return;
    measure_path(loop.body);
    for (const kir::CarriedVar& carried : loop.carried) {
      ready_[carried.result] = ready_[carried.next];
    }
  }

  void measure_live(const kir::Block& body) {
    std::vector<const Inst*> order;
    for_each_usual(body, [&](const Inst& inst) { order.push_back(&inst); });
    std::unordered_set<const Inst*> held;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      held.erase(*it);
      for (kir::Val arg : (*it)->args) {
        if (is_varying(arg)) held.insert(arg);
      }
      survey_.live = std::max(survey_.live, static_cast<int>(held.size()));
    }
  }

  const Divergence& divergence_;
  const kir::Kernel& kernel_;
  std::unordered_set<const Inst*> data_;
  std::unordered_set<const Inst*> seldom_;
  std::unordered_map<const Inst*, int> ready_;
  Survey survey_;
};

// Little work needs several vectors a round to hide the loop's own instructions, a long chain needs
// them to keep two units busy while each result waits for the one before.
int choose_interleave(const Survey& survey, int lanes, const Target& target) {
  int interleave = survey.work <= 10 ? 4 : survey.work <= 40 ? 2 : 1;
  const int waiting = 2 * survey.path / std::max(1, survey.work);
  while (interleave < 4 && 2 * interleave <= waiting) interleave *= 2;
  // Values wider than a register already hold several.
  int registers = std::max(1, lanes * survey.widest / target.vector_bits);
  while (interleave > 1 && interleave * registers > 4) interleave /= 2;
  int room = target.vector_regs * 3 / 4;
  while (interleave > 1 && survey.carried * interleave * registers > room) interleave /= 2;
  // A few values put by cost less than waiting does.
  while (interleave > 1 && survey.live * interleave * registers > 2 * target.vector_regs) {
    interleave /= 2;
  }
  return interleave;
}

// A loop that computes much a vector has few loads under way: its instructions fill the window in
// which the core looks ahead.
constexpr int kPrefetchWork = 12;
constexpr int64_t kPrefetchBytes = 2048;
constexpr int kPrefetchStreams = 6;

int64_t choose_ahead(const Survey& survey, const VectorPlan& plan) {
  const bool is_short = plan.trip && *plan.trip * survey.widest / 8 < 2 * kPrefetchBytes;
  if (is_short || survey.work < kPrefetchWork || survey.streams > kPrefetchStreams) return 0;
  return kPrefetchBytes;
}

}  // namespace

VectorPlan plan_vector_loop(const Inst& loop, const Divergence& divergence,
                            const kir::Kernel& kernel, const Target& target) {
  Survey survey = Surveyor(loop, divergence, kernel).result();
  const kir::LoopSpec& spec = loop.loop->spec;
  VectorPlan plan;
  plan.lanes = target.vector_bits / survey.widest;

  int64_t multiple = std::max<int64_t>(spec.multiple, 1);
  const Inst* lo = loop.args[0];
  const Inst* hi = loop.args[1];
  if (lo->op == Op::kConst && hi->op == Op::kConst) {
    plan.trip = std::max<int64_t>(0, hi->imm_int - lo->imm_int);
    multiple = *plan.trip;
    int64_t width = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, *plan.trip)));
    plan.lanes = static_cast<int>(std::min<int64_t>(plan.lanes, width));
  }
  plan.interleave = spec.interleave > 0
                        ? static_cast<int>(std::bit_floor(static_cast<unsigned>(spec.interleave)))
                        : choose_interleave(survey, plan.lanes, target);
  if (plan.trip) {
    while (plan.interleave > 1 && plan.lanes * plan.interleave > *plan.trip) plan.interleave /= 2;
  }
  plan.ahead = {spec.ahead, 0, spec.first_quarter, spec.quarters};
  if (spec.ahead == 0) plan.ahead.bytes = choose_ahead(survey, plan);
  if (multiple % (int64_t{plan.lanes} * plan.interleave) == 0) {
    plan.tail = VectorPlan::Tail::kNone;
  } else if (multiple % plan.lanes == 0) {
    plan.tail = VectorPlan::Tail::kVectors;
  } else if (target.has_masks || (target.has_masks32 && !survey.narrow_memory)) {
    plan.tail = VectorPlan::Tail::kMasked;
  } else {
    plan.tail = VectorPlan::Tail::kScalar;
  }
  return plan;
}

}  // namespace tenon::codegen
