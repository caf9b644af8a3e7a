// Data that is read again and again, as the third cache keeps it best.
#pragma once

#include <span>

#include "tenon/runtime/array.h"

namespace tenon::runtime {

// Reads `arrays` (invalid ones are left out) on two threads at about the same time. A cache line
// that two cores have held at once is shared: a third cache that does not include the second keeps
// its copy of such a line while cores read it. A line of one core alone moves to that core and is
// written back when the second cache runs full, which costs as much as reading it: whoever reads
// the data later is a fifth faster without that, until the lines leave the caches. Nothing happens
// with one thread, or with more data than is worth the time and sure to stay: 64 MB or a quarter of
// the third cache.
void read_together(std::span<const Array> arrays);

}  // namespace tenon::runtime
