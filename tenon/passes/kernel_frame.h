// What every kernel of a group shares: buffers for inputs and roots, the context that loads them,
// stores of roots, and the estimate of cost.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/kir/builder.h"
#include "tenon/passes/group.h"
#include "tenon/passes/group_body.h"
#include "tenon/passes/lower_context.h"

namespace tenon::passes {

// Roots that are written where an elementwise input stands: position of the root → of the input.
using InPlace = std::map<size_t, size_t>;

class KernelFrame {
 public:
  // Declares one buffer for each input, then one for each root that has no place in an input's.
  KernelFrame(const Group& group, GroupBody body, const std::string& name,
              const InPlace& in_place = {});
  KernelFrame(const KernelFrame&) = delete;
  KernelFrame& operator=(const KernelFrame&) = delete;

  const Group& group() const { return group_; }
  const GroupBody& body() const { return body_; }
  kir::Builder& builder() { return builder_; }
  GroupContext& context() { return *context_; }
  const GroupContext& context() const { return *context_; }
  uint32_t root_buffer(size_t root) const { return root_buffers_[root]; }
  // Whether a root is so large that it is written past the caches.
  bool streams(size_t root) const;

  // Computes every root at `index` and stores it; where `inside` is given, only where it holds.
  void store_roots(std::span<const kir::Val> index, kir::Val inside = nullptr);
  // Runs `body` for begin ≤ g < end of a grid of `size` indices.
  void grid_loop(const Dim& size, bool vector, const std::function<void(kir::Val)>& body);
  // The kernel with its grid cost filled in from the group's size, unless the body has set it.
  kir::Kernel finish();

 private:
  const Group& group_;
  GroupBody body_;
  std::vector<uint32_t> root_buffers_;
  kir::Kernel kernel_;
  kir::Builder builder_;
  std::optional<GroupContext> context_;
};

}  // namespace tenon::passes
