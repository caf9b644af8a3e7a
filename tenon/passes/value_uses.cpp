#include "tenon/passes/value_uses.h"

#include <algorithm>
#include <optional>

#include "tenon/passes/access.h"
#include "tenon/passes/columns.h"

namespace tenon::passes {
namespace {

// How many of the loops around, from the outermost, the index depends on.
size_t depth(const Use& use) {
  size_t deepest = 0;
  for (LoopId loop : use.index) {
    if (loop == kSomeLoop) return use.loops.size();
    auto it = std::find(use.loops.begin(), use.loops.end(), loop);
    if (it != use.loops.end()) {
      deepest = std::max(deepest, static_cast<size_t>(it - use.loops.begin()) + 1);
    }
  }
  return deepest;
}

// The index of an operand, from that of the result (`use`) and the operation's own loops.
std::vector<LoopId> operand_index(const OperandAccess& access, const Use& use,
                                  const std::vector<LoopId>& own) {
  std::vector<LoopId> index;
  for (const AxisSource& source : access.axes) {
    const auto axis = static_cast<size_t>(source.axis);
    switch (source.kind) {
      case AxisSource::Kind::kResult: index.push_back(use.index[axis]); break;
      case AxisSource::Kind::kZero: index.push_back(kNoLoop); break;
      case AxisSource::Kind::kReduced: index.push_back(own[axis]); break;
      case AxisSource::Kind::kAny: index.push_back(kSomeLoop); break;
    }
  }
  return index;
}

}  // namespace

Use identity_use(int group, size_t rank) {
  Use use{group, {}, {}};
  for (size_t i = 0; i < rank; ++i) use.index.push_back(static_cast<LoopId>(i));
  use.loops = use.index;
  return use;
}

Use ValueUses::identity(int group) const {
  const Group& at = groups_[group];
  Use use = identity_use(group, at.shape.size());
  use.loops = loop_order(at.shape, at.walked);
  return use;
}

Use ValueUses::in_order(Use use) const {
  if (use.memory) return use;
  const std::vector<LoopId> all = identity(use.group).loops;
  const bool some = std::find(use.index.begin(), use.index.end(), kSomeLoop) != use.index.end();
  const std::vector<LoopId>& needed = some ? use.loops : use.index;
  size_t depth = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::find(needed.begin(), needed.end(), all[i]) != needed.end()) depth = i + 1;
  }
  use.loops.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(depth));
  return use;
}

void ValueUses::reorder(int group) {
  for (auto& [value, uses] : uses_) {
    for (Use& use : uses) {
      if (groups_.find(use.group) != group) continue;
      use.group = group;
      use = in_order(std::move(use));
    }
  }
}

void ValueUses::ask(const ir::Value& value, Use use) {
  use.loops.resize(depth(use));
  uses_[value].push_back(std::move(use));
}

void ValueUses::ask_memory(const ir::Value& value, int group) {
  uses_[value].push_back({group, {}, {}, false, true});
}

void ValueUses::ask_operands(const ir::Node& node, uint32_t result, const Use& use) {
  std::vector<LoopId> own;
  for (const Dim& dim : own_loops(node)) {
    own.push_back(next_loop_);
    extents_[next_loop_++] = dim;
  }
  std::vector<LoopId> loops = use.loops;
  loops.insert(loops.end(), own.begin(), own.end());
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const OperandAccess access = operand_access(node, result, i);
    ask(node.operands[i],
        {use.group, operand_index(access, use, own), loops, use.many || !access.once});
  }
}

std::vector<Use> ValueUses::take(const ir::Value& value) {
  auto it = uses_.find(value);
  if (it == uses_.end()) return {};
  std::vector<Use> uses = std::move(it->second);
  uses_.erase(it);
  for (Use& use : uses) use.group = groups_.find(use.group);
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  return uses;
}

Dim ValueUses::extent(LoopId loop, int group) const {
  const Shape& shape = groups_[group].shape;
  return loop < static_cast<LoopId>(shape.size()) ? shape[static_cast<size_t>(loop)]
                                                  : extents_.at(loop);
}

bool ValueUses::evaluated_once(const ir::Value& value, const Use& use) const {
  Dim evaluations = 1;
  for (LoopId loop : use.loops) evaluations = evaluations * extent(loop, use.group);
  const Dim elements = product(value.shape());
  if (evaluations == elements) return true;
  return Dim::less(elements, evaluations) == std::optional<bool>(false);
}

std::set<int> groups_of(const std::vector<Use>& uses) {
  std::set<int> found;
  for (const Use& use : uses) found.insert(use.group);
  return found;
}

}  // namespace tenon::passes
