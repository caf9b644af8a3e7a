#include "tenon/frontend/extent.h"

#include <optional>

#include "tenon/base/error.h"
#include "tenon/frontend/layer.h"
#include "tenon/frontend/trace.h"

namespace tenon {
namespace {

std::string range_text(const Dim& dim) {
  const auto bound = [](int64_t value) {
    return value == DimRange::kInf ? std::string("inf") : fmt::format("{}", value);
  };
  const bool open = dim.upper_bound() == DimRange::kInf;
  return fmt::format("[{}, {}{}", bound(dim.lower_bound()), bound(dim.upper_bound()),
                     open ? ")" : "]");
}

std::string while_tracing() {
  const std::string name = current_trace_name();
  return name.empty() ? "" : ", while tracing " + name;
}

bool decide(std::optional<bool> answer, const Dim& a, const char* relation, const Dim& b,
            const Here& at) {
  if (answer) return *answer;
  const Dim& unknown = a.is_static() ? b : a;
  throw TraceError(
      fmt::format(
          "branch on the symbolic dimension \"{}\": {} {} {} is not decided by its range {}",
          unknown.str(), a.str(), relation, b.str(), range_text(unknown)),
      {.label = "trace_branch_dim",
       .location = ir::str(location_of(at)) + while_tracing(),
       .hint = "give the range in the layout, as in Dim(\"batch\", {.min = 1, .max = 1}), or "
               "compute both sides and use where"});
}

std::optional<bool> negated(std::optional<bool> answer) {
  if (answer) answer = !*answer;
  return answer;
}

}  // namespace

int64_t Extent::value(Here at) const {
  if (auto number = dim_.static_value()) return *number;
  throw TraceError(fmt::format("the dimension \"{}\" has no number while tracing", dim_.str()),
                   {.label = "trace_dim_value",
                    .location = ir::str(location_of(at)) + while_tracing(),
                    .hint = "compute with the dimension itself: arithmetic stays symbolic"});
}

bool operator==(const Extent& a, const ExtentOperand& b) {
  return decide(Dim::equal(a, b.dim), a, "==", b.dim, b.at);
}
bool operator<(const Extent& a, const ExtentOperand& b) {
  return decide(Dim::less(a, b.dim), a, "<", b.dim, b.at);
}
bool operator>(const Extent& a, const ExtentOperand& b) {
  return decide(Dim::less(b.dim, a), a, ">", b.dim, b.at);
}
bool operator<=(const Extent& a, const ExtentOperand& b) {
  return decide(negated(Dim::less(b.dim, a)), a, "<=", b.dim, b.at);
}
bool operator>=(const Extent& a, const ExtentOperand& b) {
  return decide(negated(Dim::less(a, b.dim)), a, ">=", b.dim, b.at);
}

const Extent& Extents::operator[](int64_t i) const {
  const auto n = static_cast<int64_t>(list_.size());
  if (i < -n || i >= n) {
    throw IndexError(fmt::format("shape: position {} of a tensor of rank {}", i, n),
                     {.label = "shape_c1"});
  }
  return list_[static_cast<size_t>(i < 0 ? i + n : i)];
}

bool equal(const Extents& a, const Shape& b, Here at) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[static_cast<int64_t>(i)] != ExtentOperand(b[i], at)) return false;
  }
  return true;
}

}  // namespace tenon
