#include "tenon/runtime/arena.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"

namespace tenon::runtime {
namespace {

// Above this, only the order by time is tried: it looks at living intervals alone.
constexpr size_t kQuadratic = 2048;
// Work of the search for a better order: orders tried times the square of the intervals.
constexpr size_t kSearchWork = size_t{1} << 20;
constexpr size_t kSearchRounds = 3000;

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

// The order of best fit on a skyline, as for strips of rectangles (Burke, Kendall, Whitwell 2004):
// the lowest valley of what is placed takes, of the intervals that live within its steps, one that
// lives longest; with `walls`, one that reaches its walls first. A valley that none fits into is
// filled up.
class Skyline {
 public:
  explicit Skyline(const std::vector<Interval>& intervals) : intervals_(intervals) {
    for (const Interval& interval : intervals) {
      steps_.push_back(interval.first);
      steps_.push_back(uint64_t{interval.last} + 1);
    }
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    for (const Interval& interval : intervals) {
      begin_.push_back(rank(interval.first));
      end_.push_back(rank(uint64_t{interval.last} + 1));
    }
  }

  // `favour` multiplies the lives.
  std::vector<size_t> order(std::vector<size_t> left, bool walls,
                            const std::vector<float>& favour) const {
    std::vector<size_t> order;
    std::vector<size_t> heights(steps_.size() - 1, 0);
    while (!left.empty()) {
      const auto lowest = std::min_element(heights.begin(), heights.end());
      const auto end = std::find_if(lowest, heights.end(), [&](size_t h) { return h != *lowest; });
      const auto from = static_cast<size_t>(lowest - heights.begin());
      const auto to = static_cast<size_t>(end - heights.begin());
      const auto best = best_within(left, from, to, walls, favour);
      if (best == left.end()) {
        const size_t before = from == 0 ? SIZE_MAX : heights[from - 1];
        const size_t after = end == heights.end() ? SIZE_MAX : *end;
        std::fill(lowest, end, std::min(before, after));
        continue;
      }
      for (size_t step = begin_[*best]; step < end_[*best]; ++step) {
        heights[step] += rounded(intervals_[*best].bytes);
      }
      order.push_back(*best);
      left.erase(best);
    }
    return order;
  }

 private:
  size_t rank(uint64_t step) const {
    return static_cast<size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) -
                               steps_.begin());
  }

  std::vector<size_t>::iterator best_within(std::vector<size_t>& left, size_t from, size_t to,
                                            bool walls, const std::vector<float>& favour) const {
    auto rating = [&](size_t i) {
      const int reached = walls ? (begin_[i] == from ? 1 : 0) + (end_[i] == to ? 1 : 0) : 0;
      const auto life = static_cast<float>(intervals_[i].last - intervals_[i].first) + 1;
      return std::tuple(reached, life * favour[i], intervals_[i].bytes);
    };
    auto best = left.end();
    for (auto it = left.begin(); it != left.end(); ++it) {
      if (begin_[*it] < from || end_[*it] > to) continue;
      if (best == left.end() || rating(*it) > rating(*best)) best = it;
    }
    return best;
  }

  const std::vector<Interval>& intervals_;
  std::vector<uint64_t> steps_;  // where a life begins or has ended
  std::vector<size_t> begin_;    // by interval: places in steps_
  std::vector<size_t> end_;
};

// Best fit; where that is not within a twentieth of `bound`, again with one or another favoured.
// The same intervals give the same plan.
void try_skylines(Plan& best, const std::vector<Interval>& intervals,
                  const std::vector<size_t>& order, size_t bound) {
  const Skyline skyline(intervals);
  const size_t rounds = 2 + std::min(kSearchRounds, kSearchWork / (order.size() * order.size()));
  std::vector<float> favour(intervals.size(), 1);
  std::minstd_rand random(1);
  for (size_t round = 0; round < rounds; ++round) {
    if (best.size <= (round < 2 ? bound : bound + bound / 20)) return;
    if (round >= 2) {
      for (float& f : favour) f = 0.5F + static_cast<float>(random() % 1024) / 1024;
    }
    keep_smaller(best, intervals, skyline.order(order, round % 2 == 0, favour), false);
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
    try_skylines(best, intervals, order, bound);
  }
  for (size_t i : best.order) intervals[i].offset = best.offsets[i];
  return best.size;
}

}  // namespace tenon::runtime
