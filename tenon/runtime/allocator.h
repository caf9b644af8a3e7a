// Memory for arrays and arenas: 64-byte aligned, uninitialised, reused. A fresh page costs more
// than the arithmetic on it, so freed blocks over 4 KB are kept and handed out again without a page
// fault, up to a bound (an eighth of the machine's memory, at least 256 MB; TENON_CACHE_BYTES sets
// it). 64 of them, for all threads, come and go without a lock (block_cache.h), and no thread keeps
// any for itself alone. Blocks from 2 MB up use huge pages unless TENON_HUGE_PAGES=0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon::runtime {

inline constexpr size_t kAlignment = 64;

// Uninitialised memory; returned to the allocator with its last owner. Never null, also for 0
// bytes. Raises ValueError naming the size when the system has no such memory, even after
// everything kept was given back. Thread-safe.
std::shared_ptr<void> allocate(size_t bytes);

struct AllocatorStats {
  uint64_t fresh_blocks;   // from the system, over 4 KB
  uint64_t reused_blocks;  // from the kept ones
  size_t kept_bytes;       // free, ready for reuse
};
AllocatorStats allocator_stats();
// Gives everything kept back to the system.
void release_kept_memory();

}  // namespace tenon::runtime
