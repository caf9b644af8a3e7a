#include "tenon/passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using Kind = Group::Kind;

constexpr size_t kMaxMembers = 96;    // operations inlined in one group
constexpr size_t kMaxUses = 12;       // different places of one group that ask for one value
constexpr size_t kMaxSearch = 256;    // groups visited to prove that there is no path
constexpr int kCheap = 2;             // scalar operations worth repeating rather than storing
constexpr int64_t kFewResults = 16;   // as in split_reductions
constexpr int64_t kFewRows = 4;       // fewer rows than this do not keep threads busy
constexpr int64_t kLargeRow = 65536;  // elements

// Loops are numbers: 0 … rank-1 the root dimensions of a group, then one for each loop that an
// inlined operation runs itself.
using LoopId = int;
constexpr LoopId kNoLoop = -1;    // index 0
constexpr LoopId kSomeLoop = -2;  // a function of every loop around

// One place where a group asks for a value: its index, and the loops that must run around it.
struct Use {
  int group;
  std::vector<LoopId> index;
  std::vector<LoopId> loops;
  bool many = false;    // a gather: one element may be asked for again and again
  bool memory = false;  // the reader needs it in memory
  auto key() const { return std::tie(group, index, loops, many, memory); }
  bool operator<(const Use& other) const { return key() < other.key(); }
};

bool pulls(const ir::Node& node) {
  if (node.op->is(ir::kStructural) || runs_on_host(node)) return false;
  return node.op->lower != nullptr && node.op->name != "slice_update" &&
         node.op->name != "matmul_packed" && node.op->name != "cumsum";
}

Kind kind_of(const ir::Node& node) {
  if (node.op == &ir::kCall) return Kind::kCall;
  if (runs_on_host(node)) return Kind::kHost;
  if (node.op->name == "matmul_packed") return Kind::kMatmul;
  if (node.op->name == "cumsum") return Kind::kScan;
  if (node.op->name == "slice_update") return Kind::kSliceUpdate;
  return Kind::kLoops;
}

class Fuser {
 public:
  Fuser(const ir::Graph& graph, bool explain) : graph_(graph), nodes_(graph.nodes()) {
    if (explain) find_readers();
  }

  Partition run() {
    for (const ir::NodePtr& node : nodes_) add_work(*node);
    for (const ir::Value& value : graph_.outputs()) outputs_.insert(value);
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) place(*it);
    return finish();
  }

 private:
  // --- cost ---
  //
  // Scalar
  // operations of one element with everything inlined, saturating.
  void add_work(const ir::Node& node) {
    int64_t work = element_cost(node);
    if (pulls(node)) {
      for (const ir::Value& operand : node.operands) work += work_[operand.node.get()];
      if (!own_loops(node).empty()) work = work * 16 + 64;
    } else {
      work = 0;
    }
    work_[&node] = std::min<int64_t>(work, 1 << 20);
  }

  Dim extent(LoopId loop, int group) const {
    const Shape& shape = groups_[static_cast<size_t>(group)].shape;
    return loop < static_cast<LoopId>(shape.size()) ? shape[static_cast<size_t>(loop)]
                                                    : extents_.at(loop);
  }

  static size_t depth(const Use& use) {
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

  // Whether the value is evaluated no more often than it has elements.
  bool evaluated_once(const ir::Value& value, const Use& use) const {
    Dim evaluations = 1;
    for (LoopId loop : use.loops) evaluations = evaluations * extent(loop, use.group);
    const Dim elements = product(value.shape());
    if (evaluations == elements) return true;
    return Dim::less(elements, evaluations) == std::optional<bool>(false);
  }

  // --- groups ---
  int find(int group) const {
    while (merged_[static_cast<size_t>(group)] != group) {
      group = merged_[static_cast<size_t>(group)];
    }
    return group;
  }

  int new_group(Kind kind, const ir::NodePtr& anchor, Shape shape) {
    Group group;
    group.kind = kind;
    group.anchor = anchor;
    group.shape = std::move(shape);
    groups_.push_back(std::move(group));
    merged_.push_back(static_cast<int>(groups_.size()) - 1);
    after_.emplace_back();
    return merged_.back();
  }

  // Whether a result of `from` reaches `to` through groups; true when the search gives up.
  bool reaches(int from, int to) const {
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

  bool mergeable(int a, int b) const {
    const Group& x = groups_[static_cast<size_t>(a)];
    const Group& y = groups_[static_cast<size_t>(b)];
    if (x.kind != Kind::kLoops || y.kind != Kind::kLoops || x.shape != y.shape) return false;
    if (x.members.size() + y.members.size() > kMaxMembers) return false;
    return !reaches(a, b) && !reaches(b, a);
  }

  void merge(int into, int from) {
    Group& x = groups_[static_cast<size_t>(into)];
    Group& y = groups_[static_cast<size_t>(from)];
    x.roots.insert(x.roots.end(), y.roots.begin(), y.roots.end());
    x.members.insert(x.members.end(), y.members.begin(), y.members.end());
    after_[static_cast<size_t>(into)].insert(after_[static_cast<size_t>(from)].begin(),
                                             after_[static_cast<size_t>(from)].end());
    merged_[static_cast<size_t>(from)] = into;
    y = Group();
  }

  std::set<int> groups_of(const std::vector<Use>& uses) const {
    std::set<int> found;
    for (const Use& use : uses) found.insert(find(use.group));
    return found;
  }

  // --- uses ---
  void ask(const ir::Value& value, Use use) {
    const size_t around = depth(use);
    use.loops.resize(std::min(around, use.loops.size()));
    uses_[value].push_back(std::move(use));
  }

  void ask_memory(const ir::Value& value, int group) {
    uses_[value].push_back({group, {}, {}, false, true});
  }

  std::vector<Use> take_uses(const ir::Value& value) {
    auto it = uses_.find(value);
    if (it == uses_.end()) return {};
    std::vector<Use> uses = std::move(it->second);
    uses_.erase(it);
    for (Use& use : uses) use.group = find(use.group);
    std::sort(uses.begin(), uses.end());
    uses.erase(std::unique(uses.begin(), uses.end(),
                           [](const Use& a, const Use& b) { return a.key() == b.key(); }),
               uses.end());
    return uses;
  }

  Use identity(int group) const {
    Use use{group, {}, {}};
    for (size_t i = 0; i < groups_[static_cast<size_t>(group)].shape.size(); ++i) {
      use.index.push_back(static_cast<LoopId>(i));
      use.loops.push_back(static_cast<LoopId>(i));
    }
    return use;
  }

  // Asks for the operands of `node`, whose result is evaluated at `use`.
  void expand(const ir::Node& node, uint32_t result, const Use& use) {
    std::vector<LoopId> loops = use.loops;
    std::vector<LoopId> own;
    for (const Dim& dim : own_loops(node)) {
      own.push_back(next_loop_);
      extents_[next_loop_++] = dim;
    }
    loops.insert(loops.end(), own.begin(), own.end());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const OperandAccess access = operand_access(node, result, i);
      Use next{use.group, {}, loops, use.many || !access.once};
      for (const AxisSource& source : access.axes) {
        switch (source.kind) {
          case AxisSource::Kind::kResult:
            next.index.push_back(use.index[static_cast<size_t>(source.axis)]);
            break;
          case AxisSource::Kind::kZero: next.index.push_back(kNoLoop); break;
          case AxisSource::Kind::kReduced:
            next.index.push_back(own[static_cast<size_t>(source.axis)]);
            break;
          case AxisSource::Kind::kAny: next.index.push_back(kSomeLoop); break;
        }
      }
      ask(node.operands[i], std::move(next));
    }
    note_reduction(node, use);
  }

  // Row reductions prescribe the grid: one grid index a row.
  void note_reduction(const ir::Node& node, const Use& use) {
    if (!node.op->is(ir::kReduction)) return;
    Group& group = groups_[static_cast<size_t>(use.group)];
    const size_t rank = group.shape.size();
    size_t around = 0;
    for (LoopId loop : use.loops) around += loop < static_cast<LoopId>(rank) ? 1 : 0;
    if (around != use.loops.size()) return;  // inside another reduction
    const bool whole = around == rank;
    if (whole && reduces_contiguous(node)) group.scalar = true;
    if (!whole || reduces_contiguous(node)) {
      group.grid_dims = group.rows ? std::min(group.grid_dims, around) : around;
      group.rows = true;
    }
  }

  // --- placing ---
  void place(const ir::NodePtr& node) {
    if (is_scalar_constant(*node)) return place_scalar({node, 0});
    if (is_memory_leaf(*node)) return place_leaf(node);
    if (!pulls(*node)) return place_step(node);
    for (uint32_t i = 0; i < node->types.size(); ++i) place_value({node, i});
  }

  void place_leaf(const ir::NodePtr& node) {
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      const std::vector<Use> uses = take_uses({node, i});
      for (const Use& use : uses) add_input(use.group, {node, i});
      note_elementwise({node, i}, uses);
    }
  }

  // Groups that read `value` at their own index alone may write where it stands.
  void note_elementwise(const ir::Value& value, const std::vector<Use>& uses) {
    std::map<int, bool> elementwise;
    for (const Use& use : uses) {
      const int reader = find(use.group);
      const Group& group = groups_[static_cast<size_t>(reader)];
      const Use whole = identity(reader);
      const bool same = group.kind == Kind::kLoops && group.shape == value.shape() && !use.memory &&
                        !use.many && use.index == whole.index && use.loops == whole.loops;
      auto it = elementwise.emplace(reader, true).first;
      it->second = it->second && same;
    }
    for (const auto& [reader, same] : elementwise) {
      Group& group = groups_[static_cast<size_t>(reader)];
      const bool reads =
          std::find(group.inputs.begin(), group.inputs.end(), value) != group.inputs.end();
      if (same && reads) group.elementwise_inputs.push_back(value);
    }
  }

  // After a merge an input is elementwise when every part that reads it says so.
  static void join_elementwise(Group& into, const Group& from) {
    auto lists = [](const std::vector<ir::Value>& values, const ir::Value& value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    std::vector<ir::Value> kept;
    for (const ir::Value& value : into.elementwise_inputs) {
      if (!lists(from.inputs, value) || lists(from.elementwise_inputs, value)) {
        kept.push_back(value);
      }
    }
    for (const ir::Value& value : from.elementwise_inputs) {
      if (!lists(into.inputs, value)) kept.push_back(value);
    }
    into.elementwise_inputs = std::move(kept);
  }

  // Code holds a scalar constant; only who needs memory reads it from there.
  void place_scalar(const ir::Value& value) {
    for (const Use& use : take_uses(value)) {
      if (use.memory) add_input(use.group, value);
    }
  }

  void add_input(int group, const ir::Value& value) {
    std::vector<ir::Value>& inputs = groups_[static_cast<size_t>(group)].inputs;
    if (std::find(inputs.begin(), inputs.end(), value) == inputs.end()) inputs.push_back(value);
  }

  // The groups that read `value` now read memory that `group` writes.
  void connect(int group, const ir::Value& value, const std::vector<Use>& uses) {
    for (const Use& use : uses) {
      const int reader = find(use.group);
      if (reader == group) continue;
      after_[static_cast<size_t>(group)].insert(reader);
      add_input(reader, value);
    }
  }

  void place_step(const ir::NodePtr& node) {
    std::vector<std::vector<Use>> uses;
    bool used = false;
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      uses.push_back(take_uses({node, i}));
      used = used || !uses.back().empty() || outputs_.count({node, i}) > 0;
    }
    if (!used) return;
    const Kind kind = kind_of(*node);
    if (kind == Kind::kMatmul && join_epilogue(node, uses[0])) return;
    if (!readers_.empty()) note_apart(node, kind);
    const int group = new_group(
        kind, node, kind == Kind::kSliceUpdate ? node->operands[1].shape() : node->types[0].shape);
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      groups_[static_cast<size_t>(group)].roots.push_back({node, i});
      connect(group, {node, i}, uses[i]);
      note_elementwise({node, i}, uses[i]);
    }
    ask_operands(node, group, kind);
  }

  void ask_operands(const ir::NodePtr& node, int group, Kind kind) {
    for (size_t i = 0; i < node->operands.size(); ++i) {
      const ir::Value& operand = node->operands[i];
      const bool pulled = (kind == Kind::kScan) || (kind == Kind::kSliceUpdate && i >= 1) ||
                          (kind == Kind::kMatmul && i == 0 && is_cast_of_memory(operand));
      if (!pulled) {
        ask_memory(operand, group);
        continue;
      }
      Use use{group, {}, {}};
      for (size_t d = 0; d < operand.shape().size(); ++d) {
        use.index.push_back(static_cast<LoopId>(d));
        use.loops.push_back(static_cast<LoopId>(d));
      }
      ask(operand, std::move(use));
    }
  }

  // A cast of a value is worth repeating in a product: its tile is copied anyway.
  static bool is_cast_of_memory(const ir::Value& value) {
    return value.node->op->name == "cast" && !pulls(*value.node->operands[0].node);
  }

  // A product whose only reader is a group of its shape becomes that group's first operation.
  bool join_epilogue(const ir::NodePtr& node, const std::vector<Use>& uses) {
    const ir::Value value{node, 0};
    const std::set<int> readers = groups_of(uses);
    if (readers.size() != 1 || outputs_.count(value) > 0) return false;
    const int group = *readers.begin();
    Group& epilogue = groups_[static_cast<size_t>(group)];
    if (epilogue.kind != Kind::kLoops || epilogue.shape != value.shape() || epilogue.rows) {
      return false;
    }
    const Use whole = identity(group);
    for (const Use& use : uses) {
      if (use.memory || use.index != whole.index || use.loops != whole.loops) return false;
    }
    if (!pure_epilogue_.count(group)) return false;
    epilogue.kind = Kind::kMatmul;
    epilogue.anchor = node;
    ask_operands(node, group, Kind::kMatmul);
    return true;
  }

  void place_value(const ir::Value& value) {
    std::vector<Use> uses = take_uses(value);
    const bool output = outputs_.count(value) > 0;
    if (uses.empty() && !output) return;
    const bool memory = std::any_of(uses.begin(), uses.end(), [](auto& use) { return use.memory; });
    if (memory || output) {
      return materialise(value, uses,
                         memory ? memory_reader(uses) + " reads whole operands"
                                : "it is a result, and no reader runs over its elements once each");
    }
    std::set<int> readers = groups_of(uses);
    if (readers.size() > 1) merge_readers(readers);
    for (Use& use : uses) use.group = find(use.group);
    readers = groups_of(uses);
    const std::string reason = why_not_inline(value, uses, readers);
    if (!reason.empty()) return materialise(value, uses, reason);
    for (const Use& use : uses) inline_at(value, use);
  }

  void merge_readers(const std::set<int>& readers) {
    std::vector<int> kept;
    for (int reader : readers) {
      auto it = std::find_if(kept.begin(), kept.end(),
                             [&](int other) { return mergeable(other, reader); });
      if (it == kept.end()) {
        kept.push_back(reader);
        continue;
      }
      Group& other = groups_[static_cast<size_t>(*it)];
      const Group& group = groups_[static_cast<size_t>(reader)];
      if (group.rows) {
        other.grid_dims = other.rows ? std::min(other.grid_dims, group.grid_dims) : group.grid_dims;
        other.rows = true;
      }
      other.scalar = other.scalar || group.scalar;
      join_elementwise(other, group);
      for (const ir::Value& input : group.inputs) add_input(*it, input);
      if (!pure_epilogue_.count(reader)) pure_epilogue_.erase(*it);
      merge(*it, reader);
    }
  }

  std::string why_not_inline(const ir::Value& value, const std::vector<Use>& uses,
                             const std::set<int>& readers) const {
    const ir::Node& node = *value.node;
    const int64_t work = work_.at(&node);
    const bool loops = !own_loops(node).empty();
    if (node.op->is(ir::kLeaf)) return "";
    if (readers.size() > 1 && (loops || work > kCheap)) {
      return fmt::format("{} kernels read it", readers.size());
    }
    if (uses.size() > kMaxUses) return "it is read in many places";
    for (int reader : readers) {
      if (groups_[static_cast<size_t>(reader)].members.size() >= kMaxMembers) {
        return "the kernel has grown to its limit";
      }
    }
    for (const Use& use : uses) {
      std::string reason = why_not_at(value, use, work, loops);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  std::string why_not_at(const ir::Value& value, const Use& use, int64_t work, bool loops) const {
    const Group& group = groups_[static_cast<size_t>(use.group)];
    const bool once = !use.many && evaluated_once(value, use);
    if (!loops) return once || work <= kCheap ? "" : "it would be computed again in an inner loop";
    if (!once || use.many) return "a reduction would run again in an inner loop";
    if (group.kind != Kind::kLoops) return "a reduction before a step of another kind";
    const size_t rank = group.shape.size();
    const bool leading = std::all_of(use.loops.begin(), use.loops.end(),
                                     [&](LoopId loop) { return loop < static_cast<LoopId>(rank); });
    const bool single = product(group.shape) == Dim(1);
    if (use.loops.empty() && !single)
      return "a reduction to one value ends before its readers begin";
    const Dim elements = product(value.node->operands[0].shape());
    if (!leading) {
      const Dim results = product(group.shape);
      const bool few = results.is_static() && results.value() < kFewResults;
      return few && elements.upper_bound() >= kLargeRow
                 ? "few results of much: the threads share the first reduction"
                 : "";
    }
    Dim rows = 1;
    for (LoopId loop : use.loops) rows = rows * extent(loop, use.group);
    if (use.loops.size() < rank && rows.is_static() && rows.value() < kFewRows &&
        elements.lower_bound() >= kLargeRow) {
      return "few long rows: the threads share what follows the reduction";
    }
    return "";
  }

  void inline_at(const ir::Value& value, const Use& use) {
    add_member(use.group, value.node);
    expand(*value.node, value.index, use);
  }

  void add_member(int group, const ir::NodePtr& node) {
    std::vector<ir::NodePtr>& members = groups_[static_cast<size_t>(group)].members;
    if (members.empty() || members.back() != node) members.push_back(node);
    if (!node->op->is(ir::kElementwise) && !node->op->is(ir::kLeaf) &&
        node->op->name != "broadcast_to" && !is_unit_reshape(*node)) {
      pure_epilogue_.erase(group);
    }
  }

  // Gives `value` memory: a root of a readers' group where one has its shape, else of a new group.
  void materialise(const ir::Value& value, const std::vector<Use>& uses, std::string_view reason) {
    if (value.node->op->name == "reshape") return place_view(value, uses);
    int group = joinable(value, uses);
    if (group < 0) note_apart(value, reason);
    if (group < 0) {
      group = new_group(Kind::kLoops, nullptr, value.shape());
      pure_epilogue_.insert(group);
    }
    groups_[static_cast<size_t>(group)].roots.push_back(value);
    add_member(group, value.node);
    connect(group, value, uses);
    note_elementwise(value, uses);
    const Use whole = identity(group);
    expand(*value.node, value.index, whole);
    // The group itself computes the value again where it reads it at another place.
    for (const Use& use : uses) {
      const bool inside = find(use.group) == group && !use.memory;
      if (inside && (use.index != whole.index || use.loops != whole.loops)) {
        expand(*value.node, value.index, use);
      }
    }
  }

  int joinable(const ir::Value& value, const std::vector<Use>& uses) const {
    const std::set<int> readers = groups_of(uses);
    for (int reader : readers) {
      const Group& group = groups_[static_cast<size_t>(reader)];
      if (group.kind != Kind::kLoops || group.shape != value.shape()) continue;
      if (group.members.size() >= kMaxMembers || reduces_contiguous(*value.node)) continue;
      const bool at_root = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
        return find(use.group) != reader ||
               (!use.memory && !use.many && evaluated_once(value, use));
      });
      const bool free = std::none_of(readers.begin(), readers.end(), [&](int other) {
        return other != reader && reaches(other, reader);
      });
      if (at_root && free) return reader;
    }
    return -1;
  }

  // --- explanation
  // --------------------------------------------------------------------------------
  void find_readers() {
    for (const ir::NodePtr& node : nodes_) {
      for (const ir::Value& operand : node->operands) readers_[operand].push_back(node.get());
    }
  }

  // The operation among the readers that needs memory.
  std::string memory_reader(const std::vector<Use>& uses) const {
    for (const Use& use : uses) {
      const Group& group = groups_[static_cast<size_t>(find(use.group))];
      if (use.memory && group.anchor != nullptr) return std::string(group.anchor->op->name);
    }
    return "a reader";
  }

  void note_apart(const ir::Value& value, std::string_view reason) {
    if (value.node->op->is(ir::kLeaf)) return;
    auto it = readers_.find(value);
    if (it == readers_.end()) return;
    std::vector<std::string_view> names;
    for (const ir::Node* reader : it->second) {
      const std::string_view name = reader->op->name;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    apart_ += fmt::format("@{} {} → {}: {} in memory, {}\n", graph_.name, value.node->op->name,
                          fmt::join(names, ", "), ir::brief(value.type()), reason);
  }

  void note_apart(const ir::NodePtr& node, Kind kind) {
    const std::string op(node->op->name);
    const std::string reason =
        kind == Kind::kMatmul ? "no reader alone takes the product's elements once each"
        : kind == Kind::kHost ? op + " has no kernel and runs through its reference evaluation"
        : kind == Kind::kCall ? "a shared body has kernels of its own"
                              : op + " is a kernel of its own";
    for (uint32_t i = 0; i < node->types.size(); ++i) note_apart(ir::Value{node, i}, reason);
  }

  void place_view(const ir::Value& value, const std::vector<Use>& uses) {
    const int group = new_group(Kind::kView, value.node, value.shape());
    groups_[static_cast<size_t>(group)].roots.push_back(value);
    connect(group, value, uses);
    note_elementwise(value, uses);
    ask_memory(value.node->operands[0], group);
  }

  // --- order ---
  Partition finish() {
    const size_t n = groups_.size();
    std::vector<int> waiting(n, 0);
    std::vector<std::set<int>> readers(n);
    for (size_t g = 0; g < n; ++g) {
      if (find(static_cast<int>(g)) != static_cast<int>(g)) continue;
      for (int reader : after_[g]) {
        if (readers[g].insert(find(reader)).second) ++waiting[static_cast<size_t>(find(reader))];
      }
    }
    auto first_id = [&](size_t g) {
      uint64_t id = ~uint64_t{0};
      for (const ir::Value& root : groups_[g].roots) id = std::min(id, root.node->id);
      return id;
    };
    std::set<std::pair<uint64_t, size_t>> ready;
    size_t live = 0;
    for (size_t g = 0; g < n; ++g) {
      if (find(static_cast<int>(g)) != static_cast<int>(g)) continue;
      ++live;
      if (waiting[g] == 0) ready.insert({first_id(g), g});
    }
    Partition partition;
    while (!ready.empty()) {
      const size_t g = ready.begin()->second;
      ready.erase(ready.begin());
      for (int reader : readers[g]) {
        if (--waiting[static_cast<size_t>(reader)] == 0) {
          ready.insert({first_id(static_cast<size_t>(reader)), static_cast<size_t>(reader)});
        }
      }
      partition.groups.push_back(std::move(groups_[g]));
      tidy(partition.groups.back());
    }
    check_internal(partition.groups.size() == live, "groups form no cycle");
    partition.apart = std::move(apart_);
    return partition;
  }

  static void tidy(Group& group) {
    auto by_id = [](const ir::NodePtr& a, const ir::NodePtr& b) { return a->id < b->id; };
    if (group.anchor != nullptr) group.members.push_back(group.anchor);
    std::sort(group.members.begin(), group.members.end(), by_id);
    group.members.erase(std::unique(group.members.begin(), group.members.end()),
                        group.members.end());
    std::reverse(group.inputs.begin(), group.inputs.end());
    auto by_value = [](const ir::Value& a, const ir::Value& b) {
      return std::pair(a.node->id, a.index) < std::pair(b.node->id, b.index);
    };
    std::sort(group.roots.begin(), group.roots.end(), by_value);
  }

  const ir::Graph& graph_;
  std::vector<ir::NodePtr> nodes_;
  std::unordered_set<ir::Value, ir::ValueHash> outputs_;
  std::unordered_map<const ir::Node*, int64_t> work_;
  std::unordered_map<ir::Value, std::vector<Use>, ir::ValueHash> uses_;
  std::vector<Group> groups_;
  std::vector<int> merged_;
  std::vector<std::set<int>> after_;       // the groups that read what it writes
  std::unordered_set<int> pure_epilogue_;  // groups of elementwise operations alone
  std::map<LoopId, Dim> extents_;
  LoopId next_loop_ = 1 << 16;
  // The operations that read a value; empty unless the partition is to be explained.
  std::unordered_map<ir::Value, std::vector<const ir::Node*>, ir::ValueHash> readers_;
  std::string apart_;
};

}  // namespace

std::string_view name(Group::Kind kind) {
  switch (kind) {
    case Kind::kLoops: return "loops";
    case Kind::kMatmul: return "matmul";
    case Kind::kScan: return "scan";
    case Kind::kSliceUpdate: return "slice_update";
    case Kind::kCall: return "call";
    case Kind::kHost: return "host";
    case Kind::kView: return "view";
  }
  return "";
}

Partition fuse(const ir::Graph& graph, bool explain) { return Fuser(graph, explain).run(); }

}  // namespace tenon::passes
