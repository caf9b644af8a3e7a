// A program that links this counts its requests for memory and its locks, of all threads and all
// libraries.
#pragma once

#include <cstddef>

#include "tenon/base/sanitizer.h"

namespace tenon {

// Sanitizers have functions of their own in place of those that are counted.
inline constexpr bool kCounted = !kAddressSanitizer && !kThreadSanitizer;

// So far; 0 when they are not counted.
size_t allocations();  // malloc and its kin, and so operator new
size_t locks();        // mutexes, and both sides of read-write locks

}  // namespace tenon
