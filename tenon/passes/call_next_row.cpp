#include "tenon/passes/call_next_row.h"

#include <algorithm>
#include <vector>

namespace tenon::passes {
namespace {

using kir::Inst;
using kir::Op;
using kir::Val;

// A vector loop that reads the row from memory.
struct Walk {
  kir::LoopSpec* spec;
  double work;
  double quarters = 0;  // what is still due
};

bool uses(Val value, Val var) {
  return value == var || std::any_of(value->args.begin(), value->args.end(),
                                     [var](Val arg) { return uses(arg, var); });
}

// Whether an index is `var` plus what does not depend on it.
bool moves_with(Val index, Val var) {
  if (index == var) return true;
  if (index->op != Op::kAdd) return false;
  const bool left = uses(index->args[0], var);
  return left != uses(index->args[1], var) && moves_with(index->args[left ? 0 : 1], var);
}

double weight(const Inst& inst) {
  if (kir::is_math(inst.op)) return 20;
  return inst.op == Op::kDiv || inst.op == Op::kSqrt ? 8 : 1;
}

bool streams(const kir::Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const Inst* inst) {
    return inst->streaming || (inst->loop && streams(inst->loop->body));
  });
}

void find_walks(const kir::Kernel& kernel, kir::Block& block, Val row, std::vector<Walk>& walks) {
  for (Inst* inst : block.insts) {
    if (!inst->loop || inst->op != Op::kFor) continue;
    kir::Loop& loop = *inst->loop;
    if (!loop.spec.vector) {
      find_walks(kernel, loop.body, row, walks);
      continue;
    }
    double work = 0;
    bool reads = false;
    for (const Inst* one : loop.body.insts) {
      work += weight(*one);
      const bool load = one->op == Op::kLoad && one->args.size() == 1;
      reads = reads || (load && kernel.buffers[one->buffer].kind == kir::Buffer::Kind::kArg &&
                        uses(one->args[0], row) && moves_with(one->args[0], loop.var));
    }
    if (reads) walks.push_back({&loop.spec, streams(loop.body) ? work / 2 : work});
  }
}

}  // namespace

void call_next_row(kir::Kernel& kernel, int64_t length) {
  std::vector<Walk> walks;
  for (Inst* inst : kernel.body.insts) {
    if (inst->loop && inst->loop->spec.parallel) {
      find_walks(kernel, inst->loop->body, inst->loop->var, walks);
    }
  }
  if (walks.size() < 2) return;
  double total = 0;
  for (const Walk& walk : walks) total += walk.work;
  int left = 4;
  for (Walk& walk : walks) {
    walk.quarters = 4 * walk.work / total;
    walk.spec->ahead = length;
    walk.spec->quarters = static_cast<int>(walk.quarters);
    walk.quarters -= walk.spec->quarters;
    left -= walk.spec->quarters;
  }
  for (; left > 0; --left) {
    Walk& due = *std::max_element(walks.begin(), walks.end(), [](const Walk& a, const Walk& b) {
      return a.quarters < b.quarters;
    });
    ++due.spec->quarters;
    due.quarters -= 1;
  }
  int first = 0;
  for (const Walk& walk : walks) {
    walk.spec->first_quarter = std::min(first, 3);
    first += walk.spec->quarters;
  }
}

}  // namespace tenon::passes
