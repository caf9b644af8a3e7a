#include "tenon/runtime/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "tenon/base/error.h"
#include "tenon/runtime/cpu_count.h"
#include "tenon/runtime/float_mode.h"

namespace tenon::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kMaxThreads = 1024;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Spins until done() for kSpin; false when the time is over.
template <class Done>
bool spin(Done done) {
  Clock::time_point end = Clock::now() + kSpin;
  while (true) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      relax();
    }
    if (Clock::now() > end) return false;
  }
}

int configured_threads() {
  if (const char* text = std::getenv("TENON_NUM_THREADS"); text != nullptr && *text != '\0') {
    char* end = nullptr;
    long value = std::strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > kMaxThreads) {
      throw ValueError(
          fmt::format("TENON_NUM_THREADS={}: expected a number from 1 to {}", text, kMaxThreads));
    }
    return static_cast<int>(value);
  }
  return std::min(available_cpus(), kMaxThreads);
}

thread_local bool inside = false;  // this thread runs a body of the pool

// One job at a time. A worker takes part only if it joins while the job is open; the caller closes
// it when the indices are used up and waits for those who joined. So a worker that wakes late costs
// nothing and never sees a finished job's context.
class Pool {
 public:
  Pool() : threads_(configured_threads()) {}

  int threads() const { return threads_; }

  void run(int64_t count, int64_t chunk, internal::Body body, void* context) {
    bool alone = threads_ == 1 || count <= chunk || inside;
    if (alone || busy_.exchange(true, std::memory_order_acquire)) {
      for (int64_t i = 0; i < count; i += chunk) body(context, i, std::min(count, i + chunk), 0);
      return;
    }
    start();
    body_ = body;
    context_ = context;
    count_ = count;
    chunk_ = chunk;
    error_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    state_.store(kOpen, std::memory_order_release);
    wake_.fetch_add(1);
    if (sleepers_.load() > 0) {
      int64_t pieces = (count + chunk - 1) / chunk;
      futex_wake(wake_, static_cast<int>(std::min<int64_t>(pieces - 1, threads_ - 1)));
    }
    work(0);
    close();
    std::exception_ptr error = std::move(error_);
    error_ = nullptr;
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
  }

 private:
  // Bits of state_; the rest of it counts the workers that joined.
  static constexpr uint32_t kOpen = 1u << 31;
  static constexpr uint32_t kWaiting = 1u << 30;  // the caller sleeps until they have left

  void start() {
    if (started_) return;
    started_ = true;
    for (int i = 1; i < threads_; ++i) {
      // Fewer threads than wanted still do all the work.
      try {
        std::thread([this, i] { serve(i); }).detach();
      } catch (const std::system_error&) {
        return;
      }
    }
  }

  void work(int thread) {
    inside = true;
    while (true) {
      int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) break;
      try {
        body_(context_, begin, std::min(count_, begin + chunk_), thread);
      } catch (...) {
        next_.store(count_, std::memory_order_relaxed);
        std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
    inside = false;
  }

  void close() {
    state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    auto done = [&] { return state_.load(std::memory_order_acquire) == 0; };
    if (spin(done)) return;
    uint32_t state = state_.fetch_or(kWaiting, std::memory_order_acq_rel) | kWaiting;
    while (state != kWaiting) {
      futex_wait(state_, state);
      state = state_.load(std::memory_order_acquire);
    }
  }

  bool join() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & kOpen) != 0) {
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  void serve(int thread) {
    FloatMode mode;  // threads inherit the mode of the one that starts them
    uint32_t seen = 0;
    while (true) {
      auto changed = [&] { return wake_.load(std::memory_order_acquire) != seen; };
      if (!spin(changed)) {
        sleepers_.fetch_add(1);
        while (!changed()) futex_wait(wake_, seen);
        sleepers_.fetch_sub(1);
      }
      seen = wake_.load(std::memory_order_acquire);
      if (!join()) continue;
      work(thread);
      uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
      if (before == (kWaiting | 1u)) futex_wake(state_, 1);
    }
  }

  const int threads_;
  std::atomic<bool> busy_{false};
  bool started_ = false;  // guarded by busy_
  internal::Body body_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  int64_t chunk_ = 1;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};
  std::atomic<int> sleepers_{0};
};

// Never destroyed: its threads live as long as the process.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

}  // namespace

int thread_count() { return pool().threads(); }

int64_t choose_chunk(int64_t count, double nanoseconds) {
  constexpr double kInline = 20'000, kLeast = 5'000;
  constexpr int64_t kManyIndices = 2048;
  double total = static_cast<double>(count) * nanoseconds;
  int threads = thread_count();
  if (threads == 1 || total < kInline) return std::max<int64_t>(count, 1);
  double least = std::max(1.0, kLeast / std::max(nanoseconds, 1e-9));
  // Short pieces end together; neighbours among few indices share what they read.
  const int64_t pieces = int64_t{threads} * (count >= kManyIndices ? 32 : 16);
  int64_t chunk = (count + pieces - 1) / pieces;
  if (least < static_cast<double>(count)) chunk = std::max(chunk, static_cast<int64_t>(least));
  // Whole vectors and cache lines where indices are elements.
  if (chunk >= 1024) chunk = (chunk + 63) / 64 * 64;
  return chunk;
}

void internal::parallel_for(int64_t count, int64_t chunk, Body body, void* context) {
  if (count <= 0) return;
  pool().run(count, std::max<int64_t>(chunk, 1), body, context);
}

}  // namespace tenon::runtime
