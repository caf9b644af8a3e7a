#include "tenon/passes/module_builder.h"

#include <string_view>

namespace tenon::passes {

abi::DimId ModuleBuilder::dim(const Dim& value) {
  auto [it, inserted] = dims_.emplace(value, static_cast<abi::DimId>(module.dims.size()));
  if (inserted) module.dims.push_back(value);
  return it->second;
}

std::vector<abi::DimId> ModuleBuilder::dims(const Shape& shape) {
  std::vector<abi::DimId> ids;
  for (const Dim& value : shape) ids.push_back(dim(value));
  return ids;
}

uint32_t ModuleBuilder::constant(const Literal& value) {
  const auto bytes = value.span();
  const size_t hash =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto [first, last] = constants_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (module.constants[it->second].same(value)) return it->second;
  }
  module.constants.push_back(value);
  const uint32_t id = static_cast<uint32_t>(module.constants.size()) - 1;
  constants_.emplace(hash, id);
  return id;
}

uint32_t ModuleBuilder::kernel(kir::Kernel kernel) {
  // The number of dimensions is part of the launch: a kernel may hold one that its text lost.
  std::string key = fmt::format("{} dims\n{}", kernel.dims.size(), kir::print(kernel, true));
  auto [it, inserted] = kernels_.emplace(std::move(key), static_cast<uint32_t>(kernels.size()));
  if (!inserted) return it->second;
  kernel.name = fmt::format("k{}", kernels.size());
  module.kernels.push_back({kernel.name, kernel.origins, ""});
  kernels.push_back(std::move(kernel));
  return it->second;
}

}  // namespace tenon::passes
