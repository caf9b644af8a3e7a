// Groups while fusion makes them: who reads whom, and merging that never closes a cycle.
#pragma once

#include <set>
#include <unordered_set>
#include <vector>

#include "tenon/passes/group.h"

namespace tenon::passes {

// Groups have numbers. A group that was merged into another keeps its number, which find() leads to
// the other's; every other function takes numbers that find() returned.
class GroupGraph {
 public:
  int add(Group::Kind kind, const ir::NodePtr& anchor, Shape shape);
  int find(int group) const;
  Group& operator[](int group) { return groups_[static_cast<size_t>(group)]; }
  const Group& operator[](int group) const { return groups_[static_cast<size_t>(group)]; }

  // `group` reads `value` from memory.
  void add_input(int group, const ir::Value& value);
  // `reader` reads `value` from memory that `writer` writes.
  void connect(int writer, int reader, const ir::Value& value);
  // Inlines `node`.
  void add_member(int group, const ir::NodePtr& node);

  // Whether `group` holds elementwise operations and broadcasts alone, and so may follow a product.
  bool is_epilogue(int group) const { return epilogues_.count(group) > 0; }

  // Whether something that `from` writes is needed for `to`; true when the search gives up.
  bool reaches(int from, int to) const;
  // Whether two groups can be one loop nest.
  bool mergeable(int a, int b) const;
  void merge(int into, int from);

  bool is_full(int group) const;  // it has as many members as a kernel should have

  // The groups in an order in which they can run; ends the use of this object.
  std::vector<Group> ordered();

 private:
  std::vector<std::set<int>> readers() const;

  std::vector<Group> groups_;
  std::vector<int> merged_;           // the group that each was merged into, or itself
  std::vector<std::set<int>> after_;  // the groups that read what it writes
  std::unordered_set<int> epilogues_;
};

}  // namespace tenon::passes
