// A group as a small graph of its own: what is lowered.
#pragma once

#include <vector>

#include "tenon/passes/group.h"

namespace tenon::passes {

// Inputs are parameters; roots are computed from them alone. Dimensions that every operation treats
// as one are merged: an elementwise group over equal shapes becomes one dimension, a softmax over
// the last axis of any rank becomes two. `grid_dims` and `walked` count merged
// dimensions.
struct GroupBody {
  std::vector<ir::Value> inputs;  // in the order of Group::inputs
  std::vector<ir::Value> roots;   // in the order of Group::roots
  ir::Value anchor;               // the rebuilt result of Group::anchor, if it has one
  Shape shape;                    // of the roots
  size_t grid_dims = 0;
  std::vector<int> walked;  // as Group::walked, where reductions run along them
};

// Copies the group with inputs replaced by parameters. With `collapse`, merges dimensions.
GroupBody make_body(const Group& group, bool collapse);

// Every node that the roots need, in order of creation.
std::vector<ir::NodePtr> nodes_of(const GroupBody& body);

}  // namespace tenon::passes
