#include "tenon/runtime/arena.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"
#include "tenon/runtime/skyline.h"

namespace tenon::runtime {
namespace {

// Above this, only the order by time is tried: it looks at living intervals alone.
constexpr size_t kQuadratic = 2048;
// Work of the search for a better order: orders tried times the square of the intervals.
constexpr size_t kSearchWork = size_t{1} << 20;
constexpr size_t kSearchRounds = 3000;
// The search below a limit: how often it begins, what it tries each time, for how many intervals.
constexpr size_t kSearches = 40;
constexpr size_t kTries = 300;
constexpr size_t kSearched = 1024;

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

// Orders on a skyline; where none comes within a twentieth of `bound`, a search below that, begun
// again and again with one or another interval favoured; then such orders without a limit. The same
// intervals give the same plan.
class SkylinePlans {
 public:
  SkylinePlans(Plan& best, const std::vector<Interval>& intervals, size_t bound)
      : best_(best), intervals_(intervals), bound_(bound), skyline_(intervals) {}

  void run() {
    for (const bool walls : {true, false}) {
      if (best_.size > bound_) attempt({walls}, SIZE_MAX);
    }
    const size_t n = best_.order.size();
    for (size_t i = 0; i < kSearches && !near() && n <= kSearched; ++i) {
      attempt({true, i == 0 ? std::vector<float>() : favours()}, bound_ + bound_ / 20);
    }
    const size_t rounds = std::min(kSearchRounds, kSearchWork / (n * n));
    for (size_t i = 0; i < rounds && !near(); ++i) attempt({i % 2 == 0, favours()}, SIZE_MAX);
  }

 private:
  bool near() const { return best_.size <= bound_ + bound_ / 20; }

  std::vector<float> favours() {
    std::vector<float> favour(intervals_.size());
    for (float& f : favour) f = 0.5F + static_cast<float>(random_() % 1024) / 1024;
    return favour;
  }

  void attempt(const Skyline::Rule& rule, size_t limit) {
    const size_t tries = limit == SIZE_MAX ? SIZE_MAX : kTries;
    std::vector<size_t> order = skyline_.order(rule, limit, tries);
    if (!order.empty()) keep_smaller(best_, intervals_, std::move(order), false);
  }

  Plan& best_;
  const std::vector<Interval>& intervals_;
  const size_t bound_;
  Skyline skyline_;
  std::minstd_rand random_{1};
};

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
    SkylinePlans(best, intervals, bound).run();
  }
  for (size_t i : best.order) intervals[i].offset = best.offsets[i];
  return best.size;
}

}  // namespace tenon::runtime
