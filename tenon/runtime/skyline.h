// Orders in which first fit needs little memory, found on a skyline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tenon/runtime/arena.h"

namespace tenon::runtime {

// Best fit, as for strips of rectangles (Burke, Kendall, Whitwell 2004), of rectangles that have
// their steps and get their height: the lowest valley of what is placed takes an interval that
// lives within its steps; a valley that none fits into is filled up. With a limit of memory this is
// a search, depth first: where a step needs more than the limit, what was placed last is taken back
// and another one tried.
class Skyline {
 public:
  // Intervals of 0 bytes are left out.
  explicit Skyline(const std::vector<Interval>& intervals);

  struct Rule {
    // Those first that reach the valley's ends, then those that live longest; or the latter alone.
    bool walls = true;
    std::vector<float> favour = {};  // multiplies the lives, by interval; empty for none
  };
  // The order in which intervals were placed without a step that needs more than `limit` bytes;
  // empty when none was found after placing `tries` intervals.
  std::vector<size_t> order(const Rule& rule, size_t limit, size_t tries);

 private:
  struct Piece {
    uint32_t begin;  // places among the steps
    uint32_t end;
    size_t bytes;  // whole lines
    size_t life;
    size_t interval;
  };
  struct Valley {
    uint32_t from;
    uint32_t to;
  };
  struct Rise {
    Valley valley;
    size_t bytes;
  };

  bool place_rest();
  Valley lowest() const;
  std::vector<uint32_t> candidates(Valley valley) const;
  bool raise(Valley valley, std::vector<Rise>& rises);
  void put(const Piece& piece);
  void take_back(const Piece& piece);

  std::vector<Piece> pieces_;     // by begin
  std::vector<uint32_t> starts_;  // by step: the first piece that begins there or later
  uint32_t steps_ = 0;            // between two of which a life begins or ends

  // Of one search.
  const Rule* rule_ = nullptr;
  size_t limit_ = 0;
  size_t tries_ = 0;
  std::vector<size_t> heights_;  // by step
  std::vector<size_t> needs_;    // by step: the height in the end if nothing more is wasted
  std::vector<bool> placed_;     // by piece
  std::vector<uint32_t> trail_;  // pieces, as they were placed
};

}  // namespace tenon::runtime
