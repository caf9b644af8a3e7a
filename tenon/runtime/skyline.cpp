#include "tenon/runtime/skyline.h"

#include <algorithm>
#include <tuple>

#include "tenon/runtime/allocator.h"

namespace tenon::runtime {

Skyline::Skyline(const std::vector<Interval>& intervals) {
  std::vector<uint64_t> steps;
  for (const Interval& one : intervals) {
    if (one.bytes == 0) continue;
    steps.push_back(one.first);
    steps.push_back(uint64_t{one.last} + 1);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  const auto rank = [&](uint64_t step) {
    const auto at = std::lower_bound(steps.begin(), steps.end(), step);
    return static_cast<uint32_t>(at - steps.begin());
  };
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& one = intervals[i];
    if (one.bytes == 0) continue;
    const size_t bytes = (one.bytes + kAlignment - 1) / kAlignment * kAlignment;
    pieces_.push_back({rank(one.first), rank(uint64_t{one.last} + 1), bytes,
                       size_t{one.last} - one.first + 1, i});
  }
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  steps_ = steps.empty() ? 0 : static_cast<uint32_t>(steps.size()) - 1;
  for (uint32_t step = 0, next = 0; step <= steps_; ++step) {
    while (next < pieces_.size() && pieces_[next].begin < step) ++next;
    starts_.push_back(next);
  }
}

std::vector<size_t> Skyline::order(const Rule& rule, size_t limit, size_t tries) {
  rule_ = &rule;
  limit_ = limit;
  tries_ = tries;
  heights_.assign(steps_, 0);
  needs_.assign(steps_, 0);
  placed_.assign(pieces_.size(), false);
  trail_.clear();
  for (const Piece& piece : pieces_) {
    for (uint32_t step = piece.begin; step < piece.end; ++step) needs_[step] += piece.bytes;
  }
  std::vector<size_t> order;
  if (place_rest()) {
    for (const uint32_t piece : trail_) order.push_back(pieces_[piece].interval);
  }
  return order;
}

bool Skyline::place_rest() {
  if (trail_.size() == pieces_.size()) return true;
  std::vector<Rise> rises;
  Valley valley = lowest();
  std::vector<uint32_t> next = candidates(valley);
  bool within = true;
  while (within && next.empty()) {
    within = raise(valley, rises);
    valley = lowest();
    next = candidates(valley);
  }
  for (size_t i = 0; within && i < next.size() && tries_ > 0; ++i) {
    --tries_;
    put(pieces_[next[i]]);
    placed_[next[i]] = true;
    trail_.push_back(next[i]);
    if (place_rest()) return true;
    trail_.pop_back();
    placed_[next[i]] = false;
    take_back(pieces_[next[i]]);
  }
  for (const Rise& rise : rises) {
    for (uint32_t step = rise.valley.from; step < rise.valley.to; ++step) {
      heights_[step] -= rise.bytes;
      needs_[step] -= rise.bytes;
    }
  }
  return false;
}

Skyline::Valley Skyline::lowest() const {
  const auto lowest = std::min_element(heights_.begin(), heights_.end());
  const auto end = std::find_if(lowest, heights_.end(), [&](size_t h) { return h != *lowest; });
  return {static_cast<uint32_t>(lowest - heights_.begin()),
          static_cast<uint32_t>(end - heights_.begin())};
}

// What fits into the valley, best first; of equal ones the first.
std::vector<uint32_t> Skyline::candidates(Valley valley) const {
  using Rated = std::tuple<int, float, size_t, uint32_t, uint32_t>;
  std::vector<Rated> rated;
  for (uint32_t i = starts_[valley.from]; i < starts_[valley.to]; ++i) {
    const Piece& piece = pieces_[i];
    if (placed_[i] || piece.end > valley.to) continue;
    const int walls = (piece.begin == valley.from ? 2 : 0) + (piece.end == valley.to ? 1 : 0);
    const float favour = rule_->favour.empty() ? 1 : rule_->favour[piece.interval];
    rated.emplace_back(rule_->walls ? walls : 0, static_cast<float>(piece.life) * favour,
                       piece.bytes, piece.begin, i);
  }
  std::stable_sort(rated.begin(), rated.end(), [](const Rated& a, const Rated& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) >
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  std::vector<uint32_t> out;
  for (const Rated& one : rated) out.push_back(std::get<4>(one));
  return out;
}

// Fills a valley up to its lower wall; false when a step then needs too much.
bool Skyline::raise(Valley valley, std::vector<Rise>& rises) {
  const size_t before = valley.from == 0 ? SIZE_MAX : heights_[valley.from - 1];
  const size_t behind = valley.to == steps_ ? SIZE_MAX : heights_[valley.to];
  const size_t bytes = std::min(before, behind) - heights_[valley.from];
  rises.push_back({valley, bytes});
  bool within = true;
  for (uint32_t step = valley.from; step < valley.to; ++step) {
    heights_[step] += bytes;
    needs_[step] += bytes;
    within = within && needs_[step] <= limit_;
  }
  return within;
}

void Skyline::put(const Piece& piece) {
  for (uint32_t step = piece.begin; step < piece.end; ++step) heights_[step] += piece.bytes;
}

void Skyline::take_back(const Piece& piece) {
  for (uint32_t step = piece.begin; step < piece.end; ++step) heights_[step] -= piece.bytes;
}

}  // namespace tenon::runtime
