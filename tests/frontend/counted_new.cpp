#include "tests/frontend/counted_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if !defined(TENON_ADDRESS_SANITIZER)

namespace {

std::atomic<size_t> count{0};

void* counted(size_t bytes, size_t alignment) {
  ++count;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* block = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)) return block;
  throw std::bad_alloc();
}

}  // namespace

namespace tenon {
size_t allocations() { return count; }
}  // namespace tenon

void* operator new(size_t bytes) { return counted(bytes, 16); }
void* operator new[](size_t bytes) { return counted(bytes, 16); }
void* operator new(size_t bytes, std::align_val_t align) {
  return counted(bytes, static_cast<size_t>(align));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }

#else

namespace tenon {
size_t allocations() { return 0; }
}  // namespace tenon

#endif
