// The one pool of worker threads. The caller takes part; nested calls and calls while another
// thread uses the pool run inline. Idle workers spin for some microseconds, then sleep.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon::runtime {

// Threads a parallel_for may use, the caller included: TENON_NUM_THREADS, else the CPUs that
// affinity and the control group leave. Fixed at the first use. Workers start when first needed.
int thread_count();

namespace internal {
using Body = void (*)(void* context, int64_t begin, int64_t end, int thread);
void parallel_for(int64_t count, int64_t chunk, Body body, void* context);
}  // namespace internal

// Calls body(begin, end, thread) for disjoint pieces of 0 … count of at most `chunk` indices,
// handed out dynamically; returns when all are done. `thread` < thread_count() is unique among
// calls of this body at one time. The first exception of a body is raised here; pieces not begun
// are then left out. Changes made by the bodies are visible after the return.
template <class F>
void parallel_for(int64_t count, int64_t chunk, F&& body) {
  using Fn = std::remove_reference_t<F>;
  internal::parallel_for(
      count, chunk,
      [](void* context, int64_t begin, int64_t end, int thread) {
        (*static_cast<Fn*>(context))(begin, end, thread);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Piece size for `count` indices that cost `nanoseconds` each on one thread: everything in one
// piece below 20 µs of work, else pieces of at least 5 µs, small enough to balance the threads.
int64_t choose_chunk(int64_t count, double nanoseconds);

}  // namespace tenon::runtime
