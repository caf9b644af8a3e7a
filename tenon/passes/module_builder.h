// Collects what the programs of a module share: dimensions, constants, kernels.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/kir/kernel.h"
#include "tenon/passes/registers.h"

namespace tenon::passes {

class ModuleBuilder {
 public:
  abi::DimId dim(const Dim& value);
  std::vector<abi::DimId> dims(const Shape& shape);
  // Position among Module::constants; equal literals are shared.
  uint32_t constant(const Literal& value);
  // Position of the kernel, shared with an earlier one of equal canonical text. `kernel.dims` of
  // the caller keep their own meaning: they are arguments of the launch.
  uint32_t kernel(kir::Kernel kernel);

  abi::Module module;
  std::vector<kir::Kernel> kernels;
  std::unordered_map<const ir::Graph*, uint32_t> programs;  // of the bodies planned so far
  Registers registers = Registers::kMany;
  bool explain = false;  // what fusion did is written down

 private:
  struct DimHash {
    size_t operator()(const Dim& dim) const { return dim.hash(); }
  };
  std::unordered_map<Dim, abi::DimId, DimHash> dims_;
  std::unordered_multimap<size_t, uint32_t> constants_;
  std::map<std::string, uint32_t> kernels_;
};

}  // namespace tenon::passes
