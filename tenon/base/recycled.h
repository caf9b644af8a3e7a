// Small blocks of memory that are made and dropped at every call: results, their owners, tensors.
// A thread keeps those that it drops and hands them out again.
#pragma once

#include <cstddef>

#include "tenon/base/api.h"

namespace tenon {

inline constexpr size_t kRecycledBytes = size_t{4} << 10;  // larger blocks come from operator new

// At least `bytes`, aligned to 64. `give_recycled` takes it back with the same `bytes`, on any
// thread. A thread keeps at most 64 KB of blocks of one size; as many again pass between threads
// that make blocks and threads that drop them. No lock is taken.
TENON_API void* take_recycled(size_t bytes);
TENON_API void give_recycled(void* block, size_t bytes) noexcept;

// For std::allocate_shared and containers.
template <class T>
struct Recycled {
  using value_type = T;
  Recycled() = default;
  template <class U>
  Recycled(const Recycled<U>&) {}  // NOLINT: as allocators are
  T* allocate(size_t n) { return static_cast<T*>(take_recycled(n * sizeof(T))); }
  void deallocate(T* block, size_t n) noexcept { give_recycled(block, n * sizeof(T)); }
  bool operator==(const Recycled&) const { return true; }
};

}  // namespace tenon
