#include "tenon/frontend/donation.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon {
namespace {

std::string text(const program::TensorGuard& guard) {
  return std::string(name(guard.dtype)) + str(guard.shape);
}

uint32_t argument_named(const program::Signature& signature, const std::string& route) {
  const std::vector<std::string> routes = signature.tensor_routes();
  const auto it = std::find(routes.begin(), routes.end(), route);
  if (it == routes.end()) {
    throw ValueError(fmt::format("{}: donate: {} is no tensor argument, they are {}",
                                 signature.function, route, fmt::join(routes, ", ")),
                     {.label = "donate_c1"});
  }
  const auto found = static_cast<uint32_t>(it - routes.begin());
  if (signature.tensors[found].writable) {
    throw ValueError(
        fmt::format("{}: donate: argument {} is a buffer", signature.function, route),
        {.label = "donate_c2", .hint = "a buffer is written in place without being donated"});
  }
  return found;
}

}  // namespace

std::vector<Donation> match_donations(const program::Signature& signature,
                                      const std::vector<std::string>& routes) {
  std::vector<Donation> donations;
  const auto taken = [&donations](uint32_t result) {
    return std::any_of(donations.begin(), donations.end(),
                       [result](const Donation& d) { return d.result == result; });
  };
  for (const std::string& route : routes) {
    const uint32_t argument = argument_named(signature, route);
    const program::TensorGuard& given = signature.tensors[argument];
    uint32_t result = 0;
    const auto count = static_cast<uint32_t>(signature.result_tensors.size());
    for (; result < count; ++result) {
      const program::TensorGuard& guard = signature.result_tensors[result];
      if (guard.dtype == given.dtype && guard.shape == given.shape && !taken(result)) break;
    }
    if (result == count) {
      throw ValueError(fmt::format("{}: donate: argument {}: no result is {}, to take its memory",
                                   signature.function, route, text(given)),
                       {.label = "donate_c3"});
    }
    donations.push_back({argument, result});
  }
  std::sort(donations.begin(), donations.end(),
            [](const Donation& a, const Donation& b) { return a.result < b.result; });
  return donations;
}

ir::GraphPtr donated_graph(const ir::GraphPtr& graph, const std::vector<Donation>& donations) {
  if (donations.empty()) return graph;
  auto out = std::make_shared<ir::Graph>(*graph);
  for (auto it = donations.rbegin(); it != donations.rend(); ++it) {
    out->writable[it->argument] = true;
    out->updates.push_back({it->argument, out->results[it->result]});
    out->results.erase(out->results.begin() + it->result);
    if (!out->result_names.empty()) {
      out->result_names.erase(out->result_names.begin() + it->result);
    }
  }
  std::sort(out->updates.begin(), out->updates.end(),
            [](const ir::Update& a, const ir::Update& b) { return a.param < b.param; });
  return out;
}

}  // namespace tenon
