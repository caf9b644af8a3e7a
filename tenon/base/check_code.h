// Codes of the checks that kernels make while they run (kir's `check`): what the run-time turns
// into an error after a launch.
#pragma once

#include <cstdint>

namespace tenon {

enum CheckCode : int64_t {
  kCheckIndexOutOfRange = 1,  // IndexError: take, take_along_axis: an index is outside its axis
  kCheckEmptyReduction = 2,   // ValueError: max, min, argmax, argmin of an axis without elements
  kCheckRowTooLong = 3,       // ValueError: argsort, top_k of more elements than positions
};

}  // namespace tenon
