#include "tenon/passes/kept_columns.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"
#include "tenon/passes/columns.h"

namespace tenon::passes {
namespace {

using ir::Value;

constexpr int kWorthKeeping = 10;  // operations of an element that depends on a reduction

bool is_pointwise(const ir::Node& node) {
  return node.op->is(ir::kElementwise) || node.op->name == "broadcast_to";
}

class Chooser {
 public:
  Chooser(const GroupBody& body, const std::vector<Value>& reductions)
      : body_(body), reductions_(reductions), nodes_(nodes_of(body)) {
    for (const Value& reduction : reductions) starts_.push_back({reduction.node->operands[0]});
    starts_.push_back(body.roots);
    find_levels();
    find_elsewhere();
  }

  KeptColumns run() {
    std::vector<Value> chosen;
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const Value value{*it, 0};
      if (!may_keep(value)) continue;
      const auto walks = walks_of(value);
      if (walks.size() < 2) continue;
      kept_.emplace(value, std::pair(walks.front(), walks.back()));
      chosen.push_back(value);
    }
    std::reverse(chosen.begin(), chosen.end());
    return in_slots(chosen);
  }

 private:
  bool is_whole(const Value& value) const { return value.shape() == body_.shape; }

  // How many reductions stand one behind the other before a value.
  void find_levels() {
    for (const ir::NodePtr& node : nodes_) {
      int level = 0;
      for (const Value& operand : node->operands)
        level = std::max(level, levels_[operand.node.get()]);
      levels_[node.get()] = level + (node->op->is(ir::kReduction) ? 1 : 0);
    }
  }

  // Whatever is behind another operation may be read at any index.
  void find_elsewhere() {
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
      const ir::Node& node = **it;
      const bool in_place = is_pointwise(node) || reduces_columns(node, body_.shape, body_.walked);
      const bool away = elsewhere_.count(&node) > 0 || !in_place;
      if (!away) continue;
      for (const Value& operand : node.operands) elsewhere_.insert(operand.node.get());
    }
  }

  bool may_keep(const Value& value) const {
    const ir::Node& node = *value.node;
    if (node.types.size() != 1 || !is_whole(value) || is_scalar_constant(node)) return false;
    if (elsewhere_.count(&node) > 0) return false;
    return levels_.at(&node) == 0 || element_cost(node) >= kWorthKeeping;
  }

  // The walks that ask for `value` where what is chosen already is kept, in their order.
  std::vector<size_t> walks_of(const Value& value) const {
    std::vector<size_t> walks;
    for (size_t walk = 0; walk < starts_.size(); ++walk) {
      if (asks(walk, value)) walks.push_back(walk);
    }
    return walks;
  }

  // Whether the walk reads `value`, otherwise than to compute `through`.
  bool asks(size_t walk, const Value& value, const Value& through = {}) const {
    std::vector<Value> stack = starts_[walk];
    std::unordered_set<const ir::Node*> seen;
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      if (at == value) return true;
      if (at == through) continue;
      if (!seen.insert(at.node.get()).second || at.node->id < value.node->id) continue;
      auto kept = kept_.find(at);
      if (kept != kept_.end() && kept->second.first < walk) continue;
      if (!at.node->op->is(ir::kReduction) ||
          !reduces_columns(*at.node, body_.shape, body_.walked)) {
        stack.insert(stack.end(), at.node->operands.begin(), at.node->operands.end());
      }
    }
    return false;
  }

  // A slot is free again after the walk that reads its value for the last time, or in that walk for
  // the one value that it is read for: an element is read there before another takes its place.
  KeptColumns in_slots(const std::vector<Value>& chosen) const {
    KeptColumns kept;
    std::vector<Value> holds;  // by slot: the last value
    for (const Value& value : chosen) {
      size_t slot = 0;
      while (slot < holds.size() && !may_follow(holds[slot], value)) ++slot;
      if (slot == holds.size()) {
        kept.slots.push_back(value.dtype());
        holds.push_back(value);
      }
      holds[slot] = value;
      kept.values.push_back({value, slot});
    }
    return kept;
  }

  bool may_follow(const Value& old, const Value& value) const {
    const size_t first = kept_.at(value).first, last = kept_.at(old).second;
    if (old.dtype() != value.dtype() || last > first || reads_twice(first)) return false;
    return last < first || !asks(last, old, value);
  }

  // argmax and argmin look for a position after they have found the value.
  bool reads_twice(size_t walk) const {
    return walk < reductions_.size() && reductions_[walk].node->op->name.starts_with("arg");
  }

  const GroupBody& body_;
  const std::vector<Value>& reductions_;
  std::vector<ir::NodePtr> nodes_;
  std::vector<std::vector<Value>> starts_;  // by walk: what it reads
  std::unordered_map<const ir::Node*, int> levels_;
  std::unordered_set<const ir::Node*> elsewhere_;
  // The first and the last walk that read a value.
  std::unordered_map<Value, std::pair<size_t, size_t>, ir::ValueHash> kept_;
};

}  // namespace

int64_t KeptColumns::element_bytes() const {
  int64_t bytes = 0;
  for (const DType dtype : slots) bytes += static_cast<int64_t>(size_of(dtype));
  return bytes;
}

std::vector<Value> column_reductions(const GroupBody& body) {
  std::vector<Value> reductions;
  for (const ir::NodePtr& node : nodes_of(body)) {
    if (reduces_columns(*node, body.shape, body.walked)) reductions.push_back({node, 0});
  }
  return reductions;
}

KeptColumns columns_to_keep(const GroupBody& body, const std::vector<Value>& reductions) {
  return Chooser(body, reductions).run();
}

}  // namespace tenon::passes
