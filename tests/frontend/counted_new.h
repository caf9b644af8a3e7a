// A program that links this counts its calls of operator new.
#pragma once

#include <cstddef>

#include "tenon/base/sanitizer.h"

namespace tenon {

inline constexpr bool kNewIsCounted = !kAddressSanitizer;

size_t allocations();  // so far, of all threads

}  // namespace tenon
