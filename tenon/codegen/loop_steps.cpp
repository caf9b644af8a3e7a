#include "tenon/codegen/loop_steps.h"

#include <functional>
#include <set>

#include "tenon/codegen/target.h"
#include "tenon/codegen/vector_plan.h"
#include "tenon/kir/expand_math.h"

namespace tenon::codegen {
namespace {

class Steps {
 public:
  Steps(const kir::Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  LoopSteps run() {
    visit(kernel_.body);
    steps_.inner.assign(inner_.begin(), inner_.end());
    return steps_;
  }

 private:
  void visit(const kir::Block& block) {
    for (const kir::Inst* inst : block.insts) {
      if (!inst->loop) continue;
      if (!inst->loop->spec.vector) {
        visit(inst->loop->body);  // a vector loop inside a vector loop runs one by one
        continue;
      }
      const Divergence divergence(*inst);
      const VectorPlan plan = plan_vector_loop(*inst, divergence, kernel_, target_);
      const int64_t step = int64_t{plan.lanes} * plan.interleave;
      if (inst->loop->spec.parallel) {
        steps_.grid = step;
      } else {
        inner_.insert(step);
      }
    }
  }

  const kir::Kernel& kernel_;
  const Target& target_;
  LoopSteps steps_;
  std::set<int64_t, std::greater<>> inner_;
};

}  // namespace

LoopSteps loop_steps(const kir::Kernel& kernel, Isa isa) {
  const Target& target = target_of(isa);
  kir::Kernel expanded = kernel_for(kernel, target).clone();
  kir::expand_math(expanded);
  return Steps(expanded, target).run();
}

}  // namespace tenon::codegen
