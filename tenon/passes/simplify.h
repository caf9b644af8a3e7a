// Algebra that keeps every bit: NaN, infinities, the sign of zero.
//
// Needs: canonical form. Promises: no pattern of the rule table is left. The rules never
//   reassociate; `x + 0` stays for floats (it turns -0 into 0), `x - 0` goes.
// Each rule is tested by random evaluation over special values (tests/passes/simplify_test.cpp).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tenon/ir/graph.h"

namespace tenon::passes {

ir::GraphPtr simplify(const ir::GraphPtr& graph);

struct SimplifyRule {
  std::string_view text;  // "x - 0 → x"
  std::string_view op;    // of the node that it replaces
  // The replacement, of the node's own type, or nullopt.
  std::optional<ir::Value> (*apply)(const ir::Node& node);
};
std::span<const SimplifyRule> simplify_rules();

}  // namespace tenon::passes
