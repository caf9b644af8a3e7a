// Where intermediates stand in the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::runtime {

// Memory that is needed while steps first … last (inclusive) run.
struct Interval {
  uint32_t first = 0;
  uint32_t last = 0;
  size_t bytes = 0;
  size_t offset = 0;  // the answer: a multiple of 64
};

// Gives every interval its offset so that intervals alive at one step do not overlap; returns the
// size of the arena. First fit, in order of time, of size and of best fit on a skyline; where none
// comes within 5 % of the most bytes alive at one step, a search on the skyline (skyline.h) for a
// plan that does. What programs need is within 5 % of that bound, and so are hundreds of
// random intervals, in a few milliseconds. Layouts without any gap are harder: up to 35 intervals
// are within 5 %, nine of ten with 80 are, those with 200 need 11 % more on average, and 16 ms.
// Raises ValueError when the sum of sizes passes 2^62.
size_t place(std::vector<Interval>& intervals);

}  // namespace tenon::runtime
