#include "tenon/passes/kernel_frame.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/ir/op_def.h"
#include "tenon/ops/packed_matmul.h"
#include "tenon/passes/access.h"
#include "tenon/passes/blocking.h"

namespace tenon::passes {
namespace {

// Larger results than this leave the caches before anyone reads them.
constexpr int64_t kStreamingBytes = int64_t{16} << 20;
// The same for products of words: their operands need the second cache.
constexpr int64_t kStreamingProduct = int64_t{8} << 20;

Dim bytes_of(const ir::Value& value) {
  return product(value.shape()) * Dim(static_cast<int64_t>(size_of(value.dtype())));
}

struct Cost {
  Dim operations = 0;
  Dim most_elements = 1;  // of any value computed on the way
};

Cost cost_of(const GroupBody& body) {
  Cost cost;
  std::unordered_set<const ir::Node*> seen;
  std::vector<ir::NodePtr> stack;
  auto visit = [&](const ir::Value& value) {
    if (!value.node->op->is(ir::kStructural) && seen.insert(value.node.get()).second) {
      stack.push_back(value.node);
    }
  };
  for (const ir::Value& root : body.roots) visit(root);
  while (!stack.empty()) {
    const ir::NodePtr node = stack.back();
    stack.pop_back();
    const Dim elements = product(node->types[0].shape) * product(own_loops(*node));
    cost.operations = cost.operations + elements * Dim(std::max(1, element_cost(*node)));
    cost.most_elements = dim_max(cost.most_elements, elements);
    for (const ir::Value& operand : node->operands) visit(operand);
  }
  return cost;
}

}  // namespace

KernelFrame::KernelFrame(const Group& group, GroupBody body, const std::string& name,
                         const InPlace& in_place)
    : group_(group), body_(std::move(body)), builder_(kernel_) {
  kernel_.name = name;
  BufferMap buffers;
  for (size_t i = 0; i < body_.inputs.size(); ++i) {
    const bool written = std::any_of(in_place.begin(), in_place.end(),
                                     [i](const auto& pair) { return pair.second == i; });
    buffers[body_.inputs[i]] =
        builder_.add_buffer(fmt::format("in{}", i), body_.inputs[i].dtype(), written);
  }
  for (size_t i = 0; i < body_.roots.size(); ++i) {
    auto place = in_place.find(i);
    root_buffers_.push_back(
        place != in_place.end()
            ? static_cast<uint32_t>(place->second)
            : builder_.add_buffer(fmt::format("out{}", i), body_.roots[i].dtype(), true));
  }
  context_.emplace(builder_, std::move(buffers));
  for (const ir::NodePtr& node : group.members) {
    if (!is_scalar_constant(*node)) kernel_.origins.emplace_back(node->op->name);
  }
}

bool KernelFrame::streams(size_t root) const {
  const Dim bytes = bytes_of(body_.roots[root]);
  const bool of_words = group_.anchor != nullptr && group_.anchor->op == &ops::kMatmulPacked &&
                        ops::is_in_words(group_.anchor->operands[1]);
  const int64_t least = of_words ? kStreamingProduct : kStreamingBytes;
  return bytes.is_static() && bytes.value() >= least;
}

void KernelFrame::store_roots(std::span<const kir::Val> index, kir::Val inside) {
  std::vector<kir::Val> values;
  for (const ir::Value& root : body_.roots) {
    values.push_back(inside == nullptr ? context_->element(root, index)
                                       : context_->element_if(root, index, inside));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Value& root = body_.roots[i];
    kir::Val flat = ops::flatten_index(builder_, root.shape(), index);
    if (inside == nullptr) {
      builder_.store(root_buffer(i), flat, values[i], streams(i));
    } else {
      builder_.store_if(root_buffer(i), flat, values[i], inside);
    }
  }
}

void KernelFrame::grid_loop(const Dim& size, bool vector,
                            const std::function<void(kir::Val)>& body) {
  kernel_.grid = size;
  kir::LoopSpec spec;
  spec.parallel = true;
  spec.vector = vector;
  builder_.loop(builder_.begin(), builder_.end(), spec, [&](kir::Val g) {
    builder_.set_bound(g, size);
    body(g);
  });
}

kir::Kernel KernelFrame::finish() {
  if (kernel_.bytes_per_index == Dim(0) && kernel_.ops_per_index == Dim(0)) {
    const Cost cost = cost_of(body_);
    Dim bytes = 0;
    for (const ir::Value& root : body_.roots) bytes = bytes + bytes_of(root);
    for (const ir::Value& input : body_.inputs) {
      const Dim most = cost.most_elements * Dim(static_cast<int64_t>(size_of(input.dtype())));
      bytes = bytes + dim_min(bytes_of(input), most);
    }
    const Dim grid = dim_max(kernel_.grid, Dim(1));
    kernel_.bytes_per_index = ceil_div(bytes, grid);
    kernel_.ops_per_index = ceil_div(cost.operations, grid);
  }
  return std::move(kernel_);
}

}  // namespace tenon::passes
