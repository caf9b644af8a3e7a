#include "tenon/runtime/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

void expect_disjoint(const std::vector<Interval>& intervals, size_t size) {
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& a = intervals[i];
    EXPECT_EQ(a.offset % 64, 0u);
    EXPECT_LE(a.offset + a.bytes, size);
    for (size_t k = 0; k < i; ++k) {
      const Interval& b = intervals[k];
      if (a.last < b.first || b.last < a.first || a.bytes == 0 || b.bytes == 0) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
          << i << " and " << k;
    }
  }
}

TEST(Arena, ChainNeedsTwoPlaces) {
  std::vector<Interval> chain;
  for (uint32_t i = 0; i < 10; ++i) chain.push_back({i, i + 1, 1000, 0});
  EXPECT_EQ(place(chain), 2048u);
  expect_disjoint(chain, 2048);
}

TEST(Arena, NothingAndEmpty) {
  std::vector<Interval> none;
  EXPECT_EQ(place(none), 0u);
  std::vector<Interval> empty = {{0, 5, 0, 0}};
  EXPECT_EQ(place(empty), 0u);
}

TEST(Arena, LargeOnesFirstWhereItHelps) {
  // By time alone, 1 and 3 leave a hole too small for 2.
  std::vector<Interval> intervals = {{0, 1, 64, 0}, {0, 9, 64, 0}, {2, 9, 128, 0}};
  EXPECT_EQ(place(intervals), 192u);
}

// The most bytes alive at one step: no plan is smaller.
size_t bound_of(const std::vector<Interval>& intervals) {
  size_t most = 0;
  for (const Interval& at : intervals) {
    size_t alive = 0;
    for (const Interval& i : intervals) {
      if (i.first <= at.first && at.first <= i.last) alive += (i.bytes + 63) / 64 * 64;
    }
    most = std::max(most, alive);
  }
  return most;
}

void expect_near(std::vector<Interval> intervals, size_t bound) {
  const size_t size = place(intervals);
  expect_disjoint(intervals, size);
  EXPECT_LE(static_cast<double>(size), 1.05 * static_cast<double>(bound)) << intervals.size();
  std::vector<Interval> again = intervals;
  EXPECT_EQ(place(again), size);
}

// The intermediates of a transformer's layers, one after another.
std::vector<Interval> transformer(std::mt19937& random, uint32_t layers) {
  const size_t rows = 4 * (1 + random() % 256);
  const size_t width = 64 * (4 + random() % 30);
  const size_t hidden = width * (2 + random() % 3);
  const size_t keys = width / (1 + random() % 4);
  const size_t scratch = 64 * (1 + random() % 5000);
  std::vector<Interval> all;
  for (uint32_t t = 0; t < 10 * layers; t += 10) {
    const auto add = [&](uint32_t first, uint32_t last, size_t bytes) {
      all.push_back({t + first, t + last, bytes, 0});
    };
    add(0, 5, rows * width);  // the sum that goes through
    add(1, 3, rows * width);
    add(2, 4, rows * width);  // queries, keys, values
    add(2, 4, rows * keys);
    add(3, 4, rows * keys);
    add(4, 4, scratch);
    add(4, 5, rows * width);
    add(5, 10, rows * width);
    add(6, 8, rows * width);
    add(7, 9, rows * hidden);
    add(8, 9, rows * hidden);
    add(9, 10, rows * hidden);
  }
  return all;
}

TEST(Arena, TransformersAndLongLivesNearTheBound) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (uint32_t layers : {1u, 2u, 12u, 30u}) {
    const std::vector<Interval> intervals = transformer(random, layers);
    expect_near(intervals, bound_of(intervals));
  }
  double sum = 0;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Interval> intervals;
    for (uint32_t i = 0; i < 120; ++i) {
      const auto first = static_cast<uint32_t>(random() % 80);
      intervals.push_back(
          {first, first + static_cast<uint32_t>(random() % 40), random() % 5000, 0});
    }
    const size_t size = place(intervals);
    expect_disjoint(intervals, size);
    sum += static_cast<double>(size) / static_cast<double>(bound_of(intervals));
  }
  EXPECT_LE(sum / kRounds, 1.05);
}

TEST(Arena, HundredsOfIntervalsNearTheBound) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (const uint32_t count : {60u, 250u}) {
    double sum = 0;
    constexpr int kRounds = 25;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Interval> intervals;
      for (uint32_t i = 0; i < count; ++i) {
        auto first = static_cast<uint32_t>(random() % (count * 2 / 3));
        intervals.push_back(
            {first, first + static_cast<uint32_t>(random() % 10), random() % 5000, 0});
      }
      size_t size = place(intervals);
      expect_disjoint(intervals, size);
      const double ratio = static_cast<double>(size) / static_cast<double>(bound_of(intervals));
      EXPECT_LE(ratio, 1.1);
      sum += ratio;
    }
    EXPECT_LE(sum / kRounds, 1.02) << count;
  }
}

// Cuts a rectangle of `steps` by `units` of 64 bytes into intervals: a plan without a gap exists.
void cut(std::mt19937& random, uint32_t first, uint32_t steps, size_t units,
         std::vector<Interval>& pieces) {
  const bool small = steps * units < 40 || (steps < 2 && units < 2);
  if (small) {
    pieces.push_back({first, first + steps - 1, units * 64, 0});
  } else if (units < 2 || (steps > 1 && random() % 2 == 0)) {
    const uint32_t at = 1 + static_cast<uint32_t>(random() % (steps - 1));
    cut(random, first, at, units, pieces);
    cut(random, first + at, steps - at, units, pieces);
  } else {
    const size_t at = 1 + random() % (units - 1);
    cut(random, first, steps, at, pieces);
    cut(random, first, steps, units - at, pieces);
  }
}

TEST(Arena, WithinAFewPercentOfThePlanWithoutAGap) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<Interval> intervals;
    cut(random, 0, 20, 28, intervals);
    std::shuffle(intervals.begin(), intervals.end(), random);
    expect_near(intervals, size_t{28} * 64);
  }
}

TEST(Arena, CloseToThePlanWithoutAGap) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  double sum = 0;
  constexpr int kRounds = 25;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Interval> intervals;
    cut(random, 0, 60, 80, intervals);
    std::shuffle(intervals.begin(), intervals.end(), random);
    size_t size = place(intervals);
    expect_disjoint(intervals, size);
    sum += static_cast<double>(size) / (80 * 64);
  }
  EXPECT_LE(sum / kRounds, 1.15);
}

// First fit in some order is an exact plan; with few intervals all orders can be tried.
size_t exact(const std::vector<Interval>& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  size_t best = SIZE_MAX;
  do {
    size_t size = 0;
    std::vector<size_t> begins(intervals.size());
    for (size_t k = 0; k < order.size(); ++k) {
      const Interval& one = intervals[order[k]];
      size_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < k; ++j) {
          const Interval& other = intervals[order[j]];
          if (other.last < one.first || one.last < other.first) continue;
          const size_t end = begins[order[j]] + other.bytes;
          if (at < end && begins[order[j]] < at + one.bytes) {
            at = end;
            moved = true;
          }
        }
      }
      begins[order[k]] = at;
      size = std::max(size, at + one.bytes);
    }
    best = std::min(best, size);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Arena, CloseToTheExactPlan) {
  unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  double worst = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> intervals;
    for (int i = 0; i < 7; ++i) {
      auto first = static_cast<uint32_t>(random() % 8);
      intervals.push_back(
          {first, first + static_cast<uint32_t>(random() % 4), 64 * (1 + random() % 40), 0});
    }
    worst = std::max(worst,
                     static_cast<double>(place(intervals)) / static_cast<double>(exact(intervals)));
  }
  EXPECT_LE(worst, 1.05);
}

TEST(Arena, RefusesOverflow) {
  std::vector<Interval> intervals = {{0, 1, size_t{1} << 62, 0}, {0, 1, size_t{1} << 62, 0}};
  EXPECT_THROW(place(intervals), ValueError);
}

}  // namespace
}  // namespace tenon::runtime
