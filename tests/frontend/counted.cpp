#include "tests/frontend/counted.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace tenon {
namespace {

std::atomic<size_t> allocation_count{0};
std::atomic<size_t> lock_count{0};

}  // namespace

size_t allocations() { return allocation_count; }
size_t locks() { return lock_count; }

}  // namespace tenon

#if !defined(TENON_ADDRESS_SANITIZER) && !defined(TENON_THREAD_SANITIZER)

namespace {

// What this program's function of that name hides.
template <class F>
F* hidden(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

using MutexLock = int(pthread_mutex_t*);
using ReadWriteLock = int(pthread_rwlock_t*);

}  // namespace

// dlsym itself may ask for memory, so the C library's functions are called by their other names.
extern "C" {

void* libc_malloc(size_t bytes) __asm__("__libc_malloc");
void* libc_calloc(size_t count, size_t bytes) __asm__("__libc_calloc");
void* libc_realloc(void* block, size_t bytes) __asm__("__libc_realloc");
void* libc_memalign(size_t alignment, size_t bytes) __asm__("__libc_memalign");

void* malloc(size_t bytes) {
  ++tenon::allocation_count;
  return libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  ++tenon::allocation_count;
  return libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) {
  ++tenon::allocation_count;
  return libc_realloc(block, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  ++tenon::allocation_count;
  return libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  ++tenon::allocation_count;
  *block = libc_memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static MutexLock* const lock = hidden<MutexLock>("pthread_mutex_lock");
  ++tenon::lock_count;
  return lock(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* mutex) {
  static ReadWriteLock* const lock = hidden<ReadWriteLock>("pthread_rwlock_rdlock");
  ++tenon::lock_count;
  return lock(mutex);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* mutex) {
  static ReadWriteLock* const lock = hidden<ReadWriteLock>("pthread_rwlock_wrlock");
  ++tenon::lock_count;
  return lock(mutex);
}

}  // extern "C"

#endif
