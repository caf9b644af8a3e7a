// A kernel that computes one result of one node from operands in memory: the smallest user of an
// op's lowering.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tenon/ir/op_def.h"
#include "tenon/kir/kernel.h"

namespace tenon::ops {

using Sizes = std::map<std::string, int64_t, std::less<>>;
Dim::Lookup lookup(const Sizes& sizes);
std::vector<int64_t> numbers(const Shape& shape, const Sizes& sizes);

// The kernel of the node's first result: a grid index is an element, its loop is `spec` (parallel).
kir::Kernel single_op_kernel(const ir::NodePtr& node, kir::LoopSpec spec);

struct KernelRun {
  Literal result;
  int64_t status = 0;  // of the kernel's checks
  std::string text;
};
// Builds, verifies and evaluates the kernel. The loop over the elements is a vector loop or not:
// reductions are vector loops where it is not.
KernelRun run_kernel(const ir::NodePtr& node, std::span<const Literal> operands, const Sizes& sizes,
                     bool vector);

}  // namespace tenon::ops
