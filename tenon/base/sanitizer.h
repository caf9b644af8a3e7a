// Whether this build runs under the address sanitizer, which replaces operator new, remembers freed
// blocks and takes memory of its own.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TENON_ADDRESS_SANITIZER 1
#elif defined(__has_feature)  // Clang has the macro since version 20 only
#if __has_feature(address_sanitizer)
#define TENON_ADDRESS_SANITIZER 1
#endif
#endif

namespace tenon {

#if defined(TENON_ADDRESS_SANITIZER)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace tenon
