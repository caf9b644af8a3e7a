// Names of dimensions that the run-time binds from the machine that runs, not from arguments.
#pragma once

namespace tenon {

inline constexpr const char* kDimThreads = "_threads";  // threads of the pool
inline constexpr const char* kDimL1 = "_l1_bytes";      // data caches of one core
inline constexpr const char* kDimL2 = "_l2_bytes";
inline constexpr const char* kDimL3 = "_l3_bytes";

}  // namespace tenon
