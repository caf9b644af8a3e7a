#include "tenon/passes/group_graph.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using Kind = Group::Kind;

constexpr size_t kMaxMembers = 96;  // operations inlined in one group
constexpr size_t kMaxSearch = 256;  // groups visited to prove that there is no path

bool lists(const std::vector<ir::Value>& values, const ir::Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// After a merge an input is elementwise when every part that reads it says so.
void join_elementwise(Group& into, const Group& from) {
  std::vector<ir::Value> kept;
  for (const ir::Value& value : into.elementwise_inputs) {
    if (!lists(from.inputs, value) || lists(from.elementwise_inputs, value)) kept.push_back(value);
  }
  for (const ir::Value& value : from.elementwise_inputs) {
    if (!lists(into.inputs, value)) kept.push_back(value);
  }
  into.elementwise_inputs = std::move(kept);
}

// Members and roots in the order of their making, inputs by first use.
void tidy(Group& group) {
  auto by_id = [](const ir::NodePtr& a, const ir::NodePtr& b) { return a->id < b->id; };
  if (group.anchor != nullptr) group.members.push_back(group.anchor);
  std::sort(group.members.begin(), group.members.end(), by_id);
  group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
  std::reverse(group.inputs.begin(), group.inputs.end());
  auto by_value = [](const ir::Value& a, const ir::Value& b) {
    return std::pair(a.node->id, a.index) < std::pair(b.node->id, b.index);
  };
  std::sort(group.roots.begin(), group.roots.end(), by_value);
}

}  // namespace

std::string_view name(Group::Kind kind) {
  switch (kind) {
    case Kind::kLoops: return "loops";
    case Kind::kMatmul: return "matmul";
    case Kind::kRoundRows: return "round rows";
    case Kind::kAttention: return "attention";
    case Kind::kScan: return "scan";
    case Kind::kSort: return "sort";
    case Kind::kMerge: return "merge";
    case Kind::kSliceUpdate: return "slice_update";
    case Kind::kScatter: return "scatter";
    case Kind::kCall: return "call";
    case Kind::kHost: return "host";
    case Kind::kView: return "view";
  }
  return "";
}

int GroupGraph::add(Kind kind, const ir::NodePtr& anchor, Shape shape) {
  Group group;
  group.kind = kind;
  group.anchor = anchor;
  group.shape = std::move(shape);
  groups_.push_back(std::move(group));
  const int number = static_cast<int>(groups_.size()) - 1;
  merged_.push_back(number);
  after_.emplace_back();
  if (kind == Kind::kLoops) epilogues_.insert(number);
  return number;
}

int GroupGraph::find(int group) const {
  while (merged_[static_cast<size_t>(group)] != group) group = merged_[static_cast<size_t>(group)];
  return group;
}

void GroupGraph::add_input(int group, const ir::Value& value) {
  std::vector<ir::Value>& inputs = (*this)[group].inputs;
  if (!lists(inputs, value)) inputs.push_back(value);
}

void GroupGraph::connect(int writer, int reader, const ir::Value& value) {
  after_[static_cast<size_t>(writer)].insert(reader);
  add_input(reader, value);
}

void GroupGraph::add_member(int group, const ir::NodePtr& node) {
  std::vector<ir::NodePtr>& members = (*this)[group].members;
  if (members.empty() || members.back() != node) members.push_back(node);
  if (!node->op->is(ir::kElementwise) && !node->op->is(ir::kLeaf) &&
      node->op->name != "broadcast_to" && !is_unit_reshape(*node)) {
    epilogues_.erase(group);
  }
}

bool GroupGraph::reaches(int from, int to) const {
  std::vector<int> stack{from};
  std::unordered_set<int> seen{from};
  while (!stack.empty()) {
    const int group = stack.back();
    stack.pop_back();
    for (int next : after_[static_cast<size_t>(group)]) {
      next = find(next);
      if (next == to) return true;
      if (seen.size() > kMaxSearch) return true;
      if (seen.insert(next).second) stack.push_back(next);
    }
  }
  return false;
}

bool GroupGraph::mergeable(int a, int b) const {
  const Group& x = (*this)[a];
  const Group& y = (*this)[b];
  if (x.kind != Kind::kLoops || y.kind != Kind::kLoops || x.shape != y.shape) return false;
  if (x.walked != y.walked) return false;
  if (x.members.size() + y.members.size() > kMaxMembers) return false;
  return !reaches(a, b) && !reaches(b, a);
}

void GroupGraph::merge(int into, int from) {
  Group& x = (*this)[into];
  Group& y = (*this)[from];
  if (y.rows) {
    x.grid_dims = x.rows ? std::min(x.grid_dims, y.grid_dims) : y.grid_dims;
    x.rows = true;
  }
  x.scalar = x.scalar || y.scalar;
  join_elementwise(x, y);
  for (const ir::Value& input : y.inputs) add_input(into, input);
  if (!is_epilogue(from)) epilogues_.erase(into);
  x.roots.insert(x.roots.end(), y.roots.begin(), y.roots.end());
  x.members.insert(x.members.end(), y.members.begin(), y.members.end());
  const std::set<int>& readers = after_[static_cast<size_t>(from)];
  after_[static_cast<size_t>(into)].insert(readers.begin(), readers.end());
  merged_[static_cast<size_t>(from)] = into;
  y = Group();
}

bool GroupGraph::is_full(int group) const { return (*this)[group].members.size() >= kMaxMembers; }

// By group: the groups that read it, merged ones under their last number.
std::vector<std::set<int>> GroupGraph::readers() const {
  std::vector<std::set<int>> readers(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (find(static_cast<int>(g)) != static_cast<int>(g)) continue;
    for (int reader : after_[g]) readers[g].insert(find(reader));
  }
  return readers;
}

// Among the groups that can run, the one whose results were made first.
std::vector<Group> GroupGraph::ordered() {
  const std::vector<std::set<int>> readers = this->readers();
  std::vector<int> waiting(groups_.size(), 0);
  for (const std::set<int>& all : readers) {
    for (int reader : all) ++waiting[static_cast<size_t>(reader)];
  }
  auto first_id = [&](int g) {
    uint64_t id = ~uint64_t{0};
    for (const ir::Value& root : (*this)[g].roots) id = std::min(id, root.node->id);
    return id;
  };
  std::set<std::pair<uint64_t, int>> ready;
  size_t live = 0;
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
    if (find(g) != g) continue;
    ++live;
    if (waiting[static_cast<size_t>(g)] == 0) ready.insert({first_id(g), g});
  }
  std::vector<Group> order;
  while (!ready.empty()) {
    const int g = ready.begin()->second;
    ready.erase(ready.begin());
    for (int reader : readers[static_cast<size_t>(g)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.insert({first_id(reader), reader});
    }
    order.push_back(std::move((*this)[g]));
    tidy(order.back());
  }
  check_internal(order.size() == live, "groups form no cycle");
  return order;
}

}  // namespace tenon::passes
