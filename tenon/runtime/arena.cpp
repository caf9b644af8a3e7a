#include "tenon/runtime/arena.h"

#include <algorithm>
#include <random>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"

namespace tenon::runtime {
namespace {

// Above this, only the order by time is tried: it looks at living intervals alone.
constexpr size_t kQuadratic = 2048;
// Work of the search for a better order: orders tried times the square of the intervals.
constexpr size_t kSearchWork = size_t{1} << 20;
constexpr size_t kSearchRounds = 6000;

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

// What no plan can go below: the most bytes alive at one step.
size_t alive_at_once(const std::vector<Interval>& intervals) {
  std::vector<std::pair<uint64_t, int64_t>> changes;
  for (const Interval& interval : intervals) {
    auto bytes = static_cast<int64_t>(rounded(interval.bytes));
    changes.emplace_back(interval.first, bytes);
    changes.emplace_back(uint64_t{interval.last} + 1, -bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [step, bytes] : changes) most = std::max(most, alive += bytes);
  return static_cast<size_t>(most);
}

struct Plan {
  std::vector<size_t> order;
  std::vector<size_t> offsets;
  size_t size = 0;
};

void keep_smaller(Plan& best, const std::vector<Interval>& intervals, std::vector<size_t> order,
                  bool by_time) {
  Plan plan{std::move(order), std::vector<size_t>(intervals.size(), 0), 0};
  plan.size = place_in_order(intervals, plan.order, by_time, plan.offsets);
  if (best.order.empty() || plan.size < best.size) best = std::move(plan);
}

// Tries other orders, most of them with what stands topmost placed earlier, until the size is
// within a twentieth of `bound` or enough were tried. The same intervals give the same plan.
void search(Plan& best, const std::vector<Interval>& intervals, size_t bound) {
  const size_t count = best.order.size();
  size_t rounds = std::min(kSearchRounds, kSearchWork / (count * count));
  std::minstd_rand random(1);
  for (Plan plan = best; rounds > 0 && best.size > bound + bound / 20; --rounds) {
    auto top = std::find_if(plan.order.begin(), plan.order.end(), [&](size_t i) {
      return plan.offsets[i] + rounded(intervals[i].bytes) == plan.size;
    });
    size_t from = static_cast<size_t>(top - plan.order.begin());
    if (from == 0 || rounds % 4 == 0) from = random() % count;
    const size_t to = from == 0 ? count - 1 : random() % from;
    std::swap(plan.order[from], plan.order[to]);
    plan.size = place_in_order(intervals, plan.order, false, plan.offsets);
    if (plan.size < best.size) best = plan;
    if (plan.size > best.size + best.size / 4) plan = best;
  }
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
  if (order.empty()) return 0;
  auto sorted = [&](auto before) {
    std::vector<size_t> result = order;
    std::stable_sort(result.begin(), result.end(), before);
    return result;
  };
  const size_t bound = alive_at_once(intervals);
  Plan best;
  keep_smaller(best, intervals,
               sorted([&](size_t a, size_t b) { return intervals[a].first < intervals[b].first; }),
               true);
  if (best.size > bound && order.size() <= kQuadratic) {
    keep_smaller(
        best, intervals,
        sorted([&](size_t a, size_t b) { return intervals[a].bytes > intervals[b].bytes; }), false);
  }
  search(best, intervals, bound);
  for (size_t i : best.order) intervals[i].offset = best.offsets[i];
  return best.size;
}

}  // namespace tenon::runtime
