// Loops over rows: while a row is worked on, the next one comes into the caches.
#pragma once

#include "tenon/kir/kernel.h"

namespace tenon::passes {

// `kernel` runs one row of `length` elements for each index of its grid, in several vector loops
// from 0 to `length` (or in blocks of them) that find the row in the caches once the first has
// passed it. They share the calling of the next row by quarters, as they share the work: memory is
// asked evenly all the time, and least where a loop writes past the caches.
void call_next_row(kir::Kernel& kernel, int64_t length);

}  // namespace tenon::passes
