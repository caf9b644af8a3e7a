// Why values stand in memory and not in the kernel that reads them: what `explain` prints.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/passes/group_graph.h"
#include "tenon/passes/value_uses.h"

namespace tenon::passes {

class FusionNotes {
 public:
  // Without `wanted` nothing is noted and text() is empty.
  FusionNotes(const ir::Graph& graph, bool wanted);

  void apart(const ir::Value& value, std::string_view reason);
  // The results of `node`, which is a step of this kind.
  void apart(const ir::NodePtr& node, Group::Kind kind);

  // One line a value that other operations read: it, they, and the reason.
  std::string text() { return std::move(text_); }

 private:
  const ir::Graph& graph_;
  std::unordered_map<ir::Value, std::vector<const ir::Node*>, ir::ValueHash> readers_;
  std::string text_;
};

}  // namespace tenon::passes
