#include "tenon/runtime/arena.h"

#include <algorithm>
#include <numeric>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"

namespace tenon::runtime {
namespace {

// Above this, only the order by time is tried: it looks at living intervals alone.
constexpr size_t kQuadratic = 2048;

size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Placed {
  size_t begin;
  size_t end;
  uint32_t first;
  uint32_t last;
};

// The lowest gap of `bytes` among living neighbours sorted by begin.
size_t lowest_gap(const std::vector<Placed>& placed, const Interval& interval) {
  size_t at = 0;
  for (const Placed& other : placed) {
    if (other.last < interval.first || interval.last < other.first) continue;
    if (other.begin >= at + rounded(interval.bytes)) break;
    at = std::max(at, other.end);
  }
  return at;
}

size_t place_in_order(const std::vector<Interval>& intervals, const std::vector<size_t>& order,
                      bool by_time, std::vector<size_t>& offsets) {
  std::vector<Placed> placed;
  size_t size = 0;
  for (size_t i : order) {
    const Interval& interval = intervals[i];
    if (by_time) {
      std::erase_if(placed, [&](const Placed& p) { return p.last < interval.first; });
    }
    size_t at = lowest_gap(placed, interval);
    Placed entry{at, at + rounded(interval.bytes), interval.first, interval.last};
    auto position =
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
    placed.insert(position, entry);
    offsets[i] = at;
    size = std::max(size, entry.end);
  }
  return size;
}

}  // namespace

size_t place(std::vector<Interval>& intervals) {
  size_t sum = 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < intervals.size(); ++i) {
    sum += intervals[i].bytes;
    if (intervals[i].bytes > (size_t{1} << 62) || sum > (size_t{1} << 62)) {
      throw ValueError("memory plan: intermediates of over 2^62 bytes", {.label = "plan_size"});
    }
    if (intervals[i].bytes != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return intervals[a].first < intervals[b].first; });
  std::vector<size_t> offsets(intervals.size(), 0);
  size_t size = place_in_order(intervals, order, true, offsets);
  if (order.size() <= kQuadratic) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return intervals[a].bytes > intervals[b].bytes; });
    std::vector<size_t> other(intervals.size(), 0);
    size_t other_size = place_in_order(intervals, order, false, other);
    if (other_size < size) {
      size = other_size;
      offsets = std::move(other);
    }
  }
  for (size_t i = 0; i < intervals.size(); ++i) intervals[i].offset = offsets[i];
  return size;
}

}  // namespace tenon::runtime
