// Where groups ask for the elements of a value, and how often.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tenon/passes/group_graph.h"

namespace tenon::passes {

// Loops are numbers: 0 … rank-1 the dimensions of a group's shape, then one for each loop that an
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
  bool operator==(const Use& other) const { return key() == other.key(); }
};

// At index (0, 1, … rank-1), inside those loops.
Use identity_use(int group, size_t rank);

class ValueUses {
 public:
  explicit ValueUses(const GroupGraph& groups) : groups_(groups) {}

  // The use of a value of the group's shape at the group's own index, in the order of its loops.
  Use identity(int group) const;

  // The same use under the order that the loops of its group have now.
  Use in_order(Use use) const;
  // Says that it has changed: in_order() of every use of `group` that was asked for.
  void reorder(int group);

  // Loops of `use` inside the innermost that its index depends on are dropped.
  void ask(const ir::Value& value, Use use);
  void ask_memory(const ir::Value& value, int group);
  // The operands of `node`, whose result number `result` is evaluated at `use`.
  void ask_operands(const ir::Node& node, uint32_t result, const Use& use);

  // Every distinct use of `value`, sorted, under the numbers that groups have now; forgets them.
  std::vector<Use> take(const ir::Value& value);

  Dim extent(LoopId loop, int group) const;
  // Whether the value is evaluated no more often than it has elements.
  bool evaluated_once(const ir::Value& value, const Use& use) const;

 private:
  const GroupGraph& groups_;
  std::unordered_map<ir::Value, std::vector<Use>, ir::ValueHash> uses_;
  std::map<LoopId, Dim> extents_;
  LoopId next_loop_ = 1 << 16;
};

std::set<int> groups_of(const std::vector<Use>& uses);

}  // namespace tenon::passes
