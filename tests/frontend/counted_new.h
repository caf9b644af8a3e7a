// A program that links this counts its calls of operator new.
#pragma once

#include <cstddef>

namespace tenon {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kNewIsCounted = false;
#else
inline constexpr bool kNewIsCounted = true;
#endif

size_t allocations();  // so far, of all threads

}  // namespace tenon
