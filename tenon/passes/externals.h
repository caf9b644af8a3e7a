// External data and what is computed from it alone.
//
// lift_externals (a graph pass). Needs: packed products. Promises: no shared body reads external
//   data: each external, and each function of externals that is no larger than they are (a packed
//   or transposed weight), is a parameter of the body, and callers pass the expression under the
//   call's prefix. In the entry graph these expressions stay.
// split_setup (the last step before lowering) cuts them off the entry: what is computed from
//   externals alone becomes extra parameters, and a setup graph that computes them from the
//   externals when these are bound.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr lift_externals(const ir::GraphPtr& graph);

struct ExternalInput {
  std::string name;
  ir::TensorType type;
};

struct SetupSplit {
  ir::GraphPtr entry;  // with extra parameters after its own
  ir::GraphPtr setup;  // null when externals are passed on as they are
  // Of each result of `setup`: equal for equal expressions of externals of equal names, whatever
  // program they stand in.
  std::vector<std::string> setup_keys;
  std::vector<ExternalInput> externals;  // by first use, each name once
};

// Raises ValueError [external_type] when one name is used with two types.
SetupSplit split_setup(const ir::GraphPtr& graph);

}  // namespace tenon::passes
