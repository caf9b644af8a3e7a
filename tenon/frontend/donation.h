// Arguments that die in a call: results take their memory, so that a training or decoding step
// needs it once and not twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/ir/graph.h"
#include "tenon/program/signature.h"

namespace tenon {

struct Donation {
  uint32_t argument;  // position among the tensors
  uint32_t result;
};

// The first result of its type for each argument, sorted by result. Raises ValueError for a route
// that is no tensor argument [donate_c1], for a buffer, which is written as it is [donate_c2], and
// where no result has the argument's dtype and shape [donate_c3].
std::vector<Donation> match_donations(const program::Signature& signature,
                                      const std::vector<std::string>& routes);

// The graph that writes those results into those arguments and returns the others.
ir::GraphPtr donated_graph(const ir::GraphPtr& graph, const std::vector<Donation>& donations);

}  // namespace tenon
