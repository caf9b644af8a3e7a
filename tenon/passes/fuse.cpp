#include "tenon/passes/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/ops/packed_qmatmul.h"
#include "tenon/ops/scan.h"
#include "tenon/ops/scatter.h"
#include "tenon/passes/access.h"
#include "tenon/passes/columns.h"
#include "tenon/passes/fusion_notes.h"
#include "tenon/passes/group_graph.h"
#include "tenon/passes/value_uses.h"

namespace tenon::passes {
namespace {

using Kind = Group::Kind;

constexpr size_t kMaxUses = 12;       // different places of one group that ask for one value
constexpr int kCheap = 2;             // scalar operations worth repeating rather than storing
constexpr int64_t kFewResults = 16;   // as in split_reductions
constexpr int64_t kFewRows = 4;       // fewer rows than this do not keep threads busy
constexpr int64_t kLargeRow = 65536;  // elements

bool pulls(const ir::Node& node) {
  if (node.op->is(ir::kStructural) || runs_on_host(node)) return false;
  return node.op->lower != nullptr && node.op->name != "slice_update" && !is_packed_product(node) &&
         !ops::is_scan(node);
}

Kind kind_of(const ir::Node& node) {
  if (node.op == &ir::kCall) return Kind::kCall;
  if (runs_on_host(node)) return Kind::kHost;
  if (is_packed_product(node)) return Kind::kMatmul;
  if (node.op == &ops::kRoundRows) return Kind::kRoundRows;
  if (node.op->name == "attention") return Kind::kAttention;
  if (ops::is_scan(node)) return Kind::kScan;
  if (node.op->name == "sort") return Kind::kSort;
  if (node.op->name == "merge_sorted") return Kind::kMerge;
  if (node.op->name == "slice_update") return Kind::kSliceUpdate;
  if (ops::is_scatter(node)) return Kind::kScatter;
  return Kind::kLoops;
}

// A cast of a value is worth repeating in a product: its tile is copied anyway.
bool is_cast_of_memory(const ir::Value& value) {
  return value.node->op->name == "cast" && !pulls(*value.node->operands[0].node);
}

class Fuser {
 public:
  Fuser(const ir::Graph& graph, bool explain)
      : graph_(graph), nodes_(graph.nodes()), uses_(groups_), notes_(graph, explain) {}

  Partition run() {
    for (const ir::NodePtr& node : nodes_) add_work(*node);
    for (const ir::Value& value : graph_.outputs()) outputs_.insert(value);
    for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) place(*it);
    return {groups_.ordered(), notes_.text()};
  }

 private:
  // Scalar operations of one element with everything inlined, saturating.
  void add_work(const ir::Node& node) {
    int64_t work = element_cost(node);
    if (pulls(node)) {
      for (const ir::Value& operand : node.operands) work += work_[operand.node.get()];
      if (!own_loops(node).empty()) work = work * 16 + 64;
      // A reduction to one value ends before its readers begin: they load it.
      if (node.op->is(ir::kReduction) && product(node.types[0].shape) == Dim(1)) work = 0;
    } else {
      work = 0;
    }
    work_[&node] = std::min<int64_t>(work, 1 << 20);
  }

  // Inlines `node` where `use` asks for its result.
  void expand(const ir::Node& node, uint32_t result, const Use& use) {
    uses_.ask_operands(node, result, use);
    note_reduction(node, use);
  }

  // Row reductions prescribe the grid: one grid index a row.
  void note_reduction(const ir::Node& node, const Use& use) {
    if (!node.op->is(ir::kReduction)) return;
    Group& group = groups_[use.group];
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

  void place(const ir::NodePtr& node) {
    if (is_scalar_constant(*node)) return place_scalar({node, 0});
    if (is_memory_leaf(*node)) return place_leaf(node);
    if (!pulls(*node)) return place_step(node);
    for (uint32_t i = 0; i < node->types.size(); ++i) place_value({node, i});
  }

  void place_leaf(const ir::NodePtr& node) {
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      const std::vector<Use> uses = uses_.take({node, i});
      for (const Use& use : uses) groups_.add_input(use.group, {node, i});
      note_elementwise({node, i}, uses);
    }
  }

  // Groups that read `value` at their own index alone may write where it stands.
  void note_elementwise(const ir::Value& value, const std::vector<Use>& uses) {
    std::map<int, bool> elementwise;
    for (const Use& use : uses) {
      const Group& group = groups_[use.group];
      const Use whole = uses_.identity(use.group);
      const bool same = group.kind == Kind::kLoops && group.shape == value.shape() && !use.memory &&
                        !use.many && use.index == whole.index && use.loops == whole.loops;
      auto it = elementwise.emplace(use.group, true).first;
      it->second = it->second && same;
    }
    for (const auto& [reader, same] : elementwise) {
      Group& group = groups_[reader];
      const bool reads =
          std::find(group.inputs.begin(), group.inputs.end(), value) != group.inputs.end();
      if (same && reads) group.elementwise_inputs.push_back(value);
    }
  }

  // Code holds a scalar constant; only who needs memory reads it from there.
  void place_scalar(const ir::Value& value) {
    for (const Use& use : uses_.take(value)) {
      if (use.memory) groups_.add_input(use.group, value);
    }
  }

  // The groups that read `value` now read memory that `group` writes.
  void connect(int group, const ir::Value& value, const std::vector<Use>& uses) {
    for (const Use& use : uses) {
      if (use.group != group) groups_.connect(group, use.group, value);
    }
  }

  void place_step(const ir::NodePtr& node) {
    std::vector<std::vector<Use>> uses;
    bool used = false;
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      uses.push_back(uses_.take({node, i}));
      used = used || !uses.back().empty() || outputs_.count({node, i}) > 0;
    }
    if (!used) return;
    const Kind kind = kind_of(*node);
    if (kind == Kind::kMatmul && join_epilogue(node, uses[0])) return;
    notes_.apart(node, kind);
    const int group = groups_.add(kind, node, loops_of(*node, kind));
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      groups_[group].roots.push_back({node, i});
      connect(group, {node, i}, uses[i]);
      note_elementwise({node, i}, uses[i]);
    }
    ask_operands(node, group, kind);
  }

  // The shape that a step's kernel runs over.
  static const Shape& loops_of(const ir::Node& node, Kind kind) {
    if (kind == Kind::kSliceUpdate) return node.operands[1].shape();
    return kind == Kind::kScatter ? node.operands[2].shape() : node.types[0].shape;
  }

  void ask_operands(const ir::NodePtr& node, int group, Kind kind) {
    for (size_t i = 0; i < node->operands.size(); ++i) {
      const ir::Value& operand = node->operands[i];
      const bool in_place = node->op == &ops::kMatmulPacked && i == 1 &&
                            operand.node->op == &ops::kMatmulPack &&
                            operand.node->attrs.b("in_place");
      if (kind == Kind::kAttention || in_place) {
        uses_.ask(operand, repeated_use(group, operand));
        continue;
      }
      const bool pulled = kind == Kind::kScan || kind == Kind::kSort ||
                          (kind == Kind::kSliceUpdate && i >= 1) ||
                          (kind == Kind::kScatter && i == 2) ||
                          (node->op == &ops::kMatmulPacked && i == 0 && is_cast_of_memory(operand));
      if (!pulled) {
        uses_.ask_memory(operand, group);
        continue;
      }
      uses_.ask(operand, identity_use(group, operand.shape().size()));
    }
  }

  // Elements that blocks of rows ask for again and again: what is cheap is computed each time.
  Use repeated_use(int group, const ir::Value& operand) const {
    Use use = uses_.identity(group);
    use.index.assign(operand.shape().size(), kSomeLoop);
    use.many = true;
    return use;
  }

  // A product whose only reader is a group of its shape becomes that group's first operation.
  bool join_epilogue(const ir::NodePtr& node, const std::vector<Use>& uses) {
    const ir::Value value{node, 0};
    const std::set<int> readers = groups_of(uses);
    if (readers.size() != 1 || outputs_.count(value) > 0) return false;
    const int group = *readers.begin();
    Group& epilogue = groups_[group];
    if (epilogue.kind != Kind::kLoops || epilogue.shape != value.shape() || epilogue.rows) {
      return false;
    }
    const Use whole = uses_.identity(group);
    for (const Use& use : uses) {
      if (use.memory || use.index != whole.index || use.loops != whole.loops) return false;
    }
    if (!groups_.is_epilogue(group)) return false;
    epilogue.kind = Kind::kMatmul;
    epilogue.anchor = node;
    ask_operands(node, group, Kind::kMatmul);
    return true;
  }

  void place_value(const ir::Value& value) {
    std::vector<Use> uses = uses_.take(value);
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
    for (Use& use : uses) use.group = groups_.find(use.group);
    readers = groups_of(uses);
    std::string reason = why_not_inline(value, uses, readers);
    if (!reason.empty() && readers.size() == 1 && walk_columns(value, uses)) {
      reason = why_not_inline(value, uses, readers);
    }
    if (!reason.empty()) return materialise(value, uses, reason);
    for (const Use& use : uses) {
      groups_.add_member(use.group, value.node);
      expand(*value.node, value.index, use);
    }
  }

  void merge_readers(const std::set<int>& readers) {
    std::vector<int> kept;
    for (int reader : readers) {
      auto it = std::find_if(kept.begin(), kept.end(),
                             [&](int other) { return groups_.mergeable(other, reader); });
      if (it == kept.end()) {
        kept.push_back(reader);
        continue;
      }
      groups_.merge(*it, reader);
    }
  }

  // Where `value` is asked for once a column of its group, and that has no reductions yet: puts the
  // loops along the columns inside the others. `uses`: those of `value`, in one group.
  bool walk_columns(const ir::Value& value, std::vector<Use>& uses) {
    const int number = uses[0].group;
    Group& group = groups_[number];
    if (group.kind != Kind::kLoops || !group.walked.empty()) return false;
    const bool has_loops = std::any_of(group.members.begin(), group.members.end(),
                                       [](auto& member) { return !own_loops(*member).empty(); });
    if (has_loops || value.shape() == group.shape) return false;
    const std::optional<std::vector<int>> walked = column_axes(value, group.shape);
    if (!walked) return false;
    for (const Use& use : uses) {
      if (use.many) return false;
      for (LoopId loop : use.index) {
        if (loop == kSomeLoop || std::binary_search(walked->begin(), walked->end(), loop)) {
          return false;
        }
      }
    }
    group.walked = *walked;
    uses_.reorder(number);
    for (Use& use : uses) use = uses_.in_order(std::move(use));
    return true;
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
      if (groups_.is_full(reader)) return "the kernel has grown to its limit";
    }
    for (const Use& use : uses) {
      std::string reason = why_not_at(value, use, work, loops);
      if (!reason.empty()) return reason;
    }
    return "";
  }

  std::string why_not_at(const ir::Value& value, const Use& use, int64_t work, bool loops) const {
    const Group& group = groups_[use.group];
    const bool once = !use.many && uses_.evaluated_once(value, use);
    if (!loops) return once || work <= kCheap ? "" : "it would be computed again in an inner loop";
    if (!once || use.many) return "a reduction would run again in an inner loop";
    if (group.kind != Kind::kLoops) return "a reduction before a step of another kind";
    if (!group.walked.empty() && !reduces_columns(*value.node, group.shape, group.walked)) {
      return "a reduction before one along other axes";
    }
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
    for (LoopId loop : use.loops) rows = rows * uses_.extent(loop, use.group);
    if (use.loops.size() < rank && rows.is_static() && rows.value() < kFewRows &&
        elements.lower_bound() >= kLargeRow) {
      return "few long rows: the threads share what follows the reduction";
    }
    return "";
  }

  // Gives `value` memory: a root of a readers' group where one has its shape, else of a new group.
  void materialise(const ir::Value& value, const std::vector<Use>& uses, std::string_view reason) {
    if (value.node->op->name == "reshape") return place_view(value, uses);
    int group = joinable(value, uses);
    if (group < 0) {
      notes_.apart(value, reason);
      group = groups_.add(Kind::kLoops, nullptr, value.shape());
    }
    groups_[group].roots.push_back(value);
    groups_.add_member(group, value.node);
    connect(group, value, uses);
    note_elementwise(value, uses);
    const Use whole = uses_.identity(group);
    expand(*value.node, value.index, whole);
    // The group itself computes the value again where it reads it at another place.
    for (const Use& use : uses) {
      const bool inside = use.group == group && !use.memory;
      if (inside && (use.index != whole.index || use.loops != whole.loops)) {
        expand(*value.node, value.index, use);
      }
    }
  }

  // The operation among the readers that needs memory.
  std::string memory_reader(const std::vector<Use>& uses) const {
    for (const Use& use : uses) {
      const Group& group = groups_[use.group];
      if (use.memory && group.anchor != nullptr) return std::string(group.anchor->op->name);
    }
    return "a reader";
  }

  int joinable(const ir::Value& value, const std::vector<Use>& uses) const {
    const std::set<int> readers = groups_of(uses);
    for (int reader : readers) {
      const Group& group = groups_[reader];
      if (group.kind != Kind::kLoops || group.shape != value.shape()) continue;
      if (groups_.is_full(reader) || reduces_contiguous(*value.node)) continue;
      if (!group.walked.empty() && !own_loops(*value.node).empty()) continue;
      const bool at_root = std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
        return use.group != reader ||
               (!use.memory && !use.many && uses_.evaluated_once(value, use));
      });
      const bool free = std::none_of(readers.begin(), readers.end(), [&](int other) {
        return other != reader && groups_.reaches(other, reader);
      });
      if (at_root && free) return reader;
    }
    return -1;
  }

  void place_view(const ir::Value& value, const std::vector<Use>& uses) {
    const int group = groups_.add(Kind::kView, value.node, value.shape());
    groups_[group].roots.push_back(value);
    connect(group, value, uses);
    note_elementwise(value, uses);
    uses_.ask_memory(value.node->operands[0], group);
  }

  const ir::Graph& graph_;
  std::vector<ir::NodePtr> nodes_;
  std::unordered_set<ir::Value, ir::ValueHash> outputs_;
  std::unordered_map<const ir::Node*, int64_t> work_;
  GroupGraph groups_;
  ValueUses uses_;
  FusionNotes notes_;
};

}  // namespace

Partition fuse(const ir::Graph& graph, bool explain) { return Fuser(graph, explain).run(); }

}  // namespace tenon::passes
