#include "tenon/passes/group_body.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/ir/op_def.h"
#include "tenon/passes/access.h"

namespace tenon::passes {
namespace {

using ir::Value;

bool same_everywhere(const ir::Node& node) {
  return node.types.size() == 1 &&
         (node.op->is(ir::kElementwise) || node.op->name == "broadcast_to");
}

// Which neighbouring dimensions of every value stay apart. A boundary stands between dimensions i
// and i+1 of a value; operations tie boundaries of operands and results together, and cut those
// that they treat differently on both sides.
class Boundaries {
 public:
  Boundaries(const Group& group, bool collapse) {
    for (const ir::NodePtr& node : group.members) {
      for (uint32_t i = 0; i < node->types.size(); ++i) add({node, i});
      for (const Value& operand : node->operands) add(operand);
    }
    for (const ir::NodePtr& node : group.members) {
      if (collapse && same_everywhere(*node)) {
        for (const Value& operand : node->operands) tie_broadcast(operand, {node, 0});
      } else if (collapse && node->op->is(ir::kReduction) && node->types.size() == 1) {
        tie_reduction(node);
      } else {
        for (uint32_t i = 0; i < node->types.size(); ++i) cut_all({node, i});
        for (const Value& operand : node->operands) cut_all(operand);
      }
    }
    // One loop nest serves all roots.
    for (const Value& root : group.roots) {
      if (group.kind != Group::Kind::kLoops) break;
      for (size_t i = 0; i + 1 < root.shape().size(); ++i) tie(group.roots[0], i, root, i);
    }
    if (!group.rows || group.grid_dims == 0) return;
    if (!group.walked.empty()) {
      cut_around(group);
      return;
    }
    for (const Value& root : group.roots) {
      if (group.grid_dims < root.shape().size()) cut(root, group.grid_dims - 1);
    }
  }

  bool apart(const Value& value, size_t i) { return cut_[find(base_.at(value) + i)]; }

  // Position of each dimension after merging.
  std::vector<size_t> positions(const Value& value) {
    std::vector<size_t> at(value.shape().size(), 0);
    for (size_t i = 1; i < at.size(); ++i) at[i] = at[i - 1] + (apart(value, i - 1) ? 1 : 0);
    return at;
  }

  // The axes (sorted) after merging.
  std::vector<int> merged_axes(const Value& value, const std::vector<int>& axes) {
    const std::vector<size_t> at = positions(value);
    std::vector<int> merged;
    for (int axis : axes) {
      const int position = static_cast<int>(at[static_cast<size_t>(axis)]);
      if (merged.empty() || merged.back() != position) merged.push_back(position);
    }
    return merged;
  }

  Shape merged(const Value& value) {
    Shape out;
    const std::vector<size_t> at = positions(value);
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] < out.size()) {
        out.back() = out.back() * value.shape()[i];
      } else {
        out.push_back(value.shape()[i]);
      }
    }
    return out;
  }

 private:
  void add(const Value& value) {
    if (!base_.emplace(value, parent_.size()).second) return;
    for (size_t i = 0; i + 1 < value.shape().size(); ++i) {
      parent_.push_back(parent_.size());
      cut_.push_back(false);
    }
  }

  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void cut(const Value& value, size_t i) { cut_[find(base_.at(value) + i)] = true; }

  void cut_all(const Value& value) {
    for (size_t i = 0; i + 1 < value.shape().size(); ++i) cut(value, i);
  }

  // Walked dimensions and others stay apart.
  void cut_around(const Group& group) {
    const auto walked = [&](size_t i) {
      return std::binary_search(group.walked.begin(), group.walked.end(), static_cast<int>(i));
    };
    for (size_t i = 0; i + 1 < group.shape.size(); ++i) {
      if (walked(i) == walked(i + 1)) continue;
      for (const Value& root : group.roots) cut(root, i);
    }
  }

  void tie(const Value& a, size_t i, const Value& b, size_t j) {
    const size_t x = find(base_.at(a) + i);
    const size_t y = find(base_.at(b) + j);
    if (x == y) return;
    parent_[y] = x;
    cut_[x] = cut_[x] || cut_[y];
  }

  // Whether `operand` is broadcast along each dimension of the result. A dimension of 1 goes with
  // its neighbour: the left one where there is one.
  static std::vector<bool> broadcast_flags(const Shape& operand, const Shape& shape) {
    const size_t missing = shape.size() - operand.size();
    std::vector<bool> flags(shape.size(), false);
    size_t first = shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == Dim(1)) {
        flags[i] = i > 0 && flags[i - 1];
        continue;
      }
      flags[i] = i < missing || operand[i - missing] != shape[i];
      first = std::min(first, i);
    }
    if (first < shape.size()) std::fill(flags.begin(), flags.begin() + first, flags[first]);
    return flags;
  }

  void tie_broadcast(const Value& operand, const Value& result) {
    const size_t missing = result.shape().size() - operand.shape().size();
    const std::vector<bool> broadcast = broadcast_flags(operand.shape(), result.shape());
    for (size_t i = 0; i + 1 < broadcast.size(); ++i) {
      if (i >= missing) tie(result, i, operand, i - missing);
      if (broadcast[i] != broadcast[i + 1]) cut(result, i);
    }
  }

  void tie_reduction(const ir::NodePtr& node) {
    const Value& operand = node->operands[0];
    const Value result{node, 0};
    const std::vector<int> axes = reduced_axes(*node);
    const bool keep = node->attrs.b("keepdims");
    auto reduced = [&](size_t i) {
      return std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end();
    };
    size_t at = 0;  // of the result, of operand dimension i
    for (size_t i = 0; i + 1 < operand.shape().size(); ++i) {
      const bool here = reduced(i);
      const bool next = reduced(i + 1);
      const bool has_boundary = keep || (!here && at + 1 < result.shape().size());
      if (here != next) {
        cut(operand, i);
        if (has_boundary) cut(result, at);
      } else if (has_boundary) {
        tie(operand, i, result, at);
      }
      if (keep || !here) ++at;
    }
  }

  std::unordered_map<Value, size_t, ir::ValueHash> base_;
  std::vector<size_t> parent_;
  std::vector<bool> cut_;
};

class Copier {
 public:
  Copier(const Group& group, bool collapse) : group_(group), boundaries_(group, collapse) {}

  GroupBody run() {
    GroupBody body;
    for (const Value& input : group_.inputs) {
      Value parameter = ir::make_parameter({input.dtype(), boundaries_.merged(input)}, "");
      body.inputs.push_back(parameter);
      copies_[input] = parameter;
    }
    if (is_update(group_.kind)) {
      const Value& target = group_.anchor->operands[0];
      if (copies_.count(target) == 0) copies_[target] = ir::make_parameter(target.type(), "");
    }
    for (const ir::NodePtr& node : group_.members) copy(node);
    for (const Value& root : group_.roots) body.roots.push_back(copies_.at(root));
    if (group_.anchor != nullptr) body.anchor = copies_.at({group_.anchor, 0});
    const Value& first = group_.roots.front();
    body.shape = body.roots.front().shape();
    if (group_.rows && !group_.walked.empty()) {
      body.walked = boundaries_.merged_axes(first, group_.walked);
    } else if (group_.rows && group_.grid_dims > 0) {
      body.grid_dims = boundaries_.positions(first)[group_.grid_dims - 1] + 1;
    }
    return body;
  }

 private:
  Value operand(const Value& value) {
    auto it = copies_.find(value);
    if (it != copies_.end()) return it->second;
    check_internal(is_scalar_constant(*value.node), "a group computes what it reads");
    const Literal& literal = value.node->attrs.get<Literal>("value");
    const std::vector<int64_t> dims(boundaries_.merged(value).size(), 1);
    std::shared_ptr<const ir::Node> owner = value.node;
    return copies_[value] =
               ir::make_constant(Literal::borrow(literal.dtype(), dims, literal.data(), owner));
  }

  void copy(const ir::NodePtr& node) {
    if (copies_.count({node, 0}) > 0 || is_scalar_constant(*node)) {
      if (copies_.count({node, 0}) == 0) operand({node, 0});
      return;
    }
    std::vector<Value> operands;
    for (const Value& value : node->operands) operands.push_back(operand(value));
    ir::Attrs attrs = node->attrs;
    if (node->op->name == "broadcast_to") attrs.set("shape", boundaries_.merged({node, 0}));
    if (node->op->is(ir::kReduction)) {
      const std::vector<int> axes = boundaries_.merged_axes(node->operands[0], reduced_axes(*node));
      attrs.set("axes", std::vector<int64_t>(axes.begin(), axes.end()));
    }
    ir::NodePtr made = ir::make_node(*node->op, std::move(operands), std::move(attrs));
    for (uint32_t i = 0; i < node->types.size(); ++i) {
      check_internal(made->types[i].shape == boundaries_.merged({node, i}),
                     "merging dimensions keeps shapes in step");
      copies_[{node, i}] = {made, i};
    }
  }

  const Group& group_;
  Boundaries boundaries_;
  std::unordered_map<Value, Value, ir::ValueHash> copies_;
};

}  // namespace

GroupBody make_body(const Group& group, bool collapse) { return Copier(group, collapse).run(); }

std::vector<ir::NodePtr> nodes_of(const GroupBody& body) {
  ir::Graph graph;
  graph.results = body.roots;
  return graph.nodes();
}

}  // namespace tenon::passes
