#include "tenon/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tenon::runtime {
namespace {

// The pool of this process has several threads, whatever the machine has.
const int kSet = ::setenv("TENON_NUM_THREADS", "4", 0);

class ThreadPool : public testing::Test {};

TEST_F(ThreadPool, SizeFromTheEnvironment) {
  ASSERT_EQ(kSet, 0);
  EXPECT_EQ(std::to_string(thread_count()), std::getenv("TENON_NUM_THREADS"));
}

TEST_F(ThreadPool, EveryIndexOnce) {
  for (int64_t count : {0, 1, 7, 1000}) {
    for (int64_t chunk : {1, 3, 64, 5000}) {
      std::vector<int> seen(static_cast<size_t>(count), 0);
      parallel_for(count, chunk, [&](int64_t begin, int64_t end, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, thread_count());
        EXPECT_LE(end - begin, chunk);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (int s : seen) ASSERT_EQ(s, 1);
    }
  }
}

TEST_F(ThreadPool, ThreadNumbersAreUniqueAtOneTime) {
  std::vector<std::atomic<int>> active(static_cast<size_t>(thread_count()));
  for (int round = 0; round < 200; ++round) {
    parallel_for(64, 1, [&](int64_t, int64_t, int thread) {
      ASSERT_EQ(active[static_cast<size_t>(thread)].fetch_add(1), 0);
      for (int i = 0; i < 200; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      active[static_cast<size_t>(thread)].fetch_sub(1);
    });
  }
}

TEST_F(ThreadPool, NestedCallsRunInline) {
  std::atomic<int64_t> sum{0};
  parallel_for(20, 1, [&](int64_t, int64_t, int) {
    std::thread::id self = std::this_thread::get_id();
    parallel_for(50, 1, [&](int64_t begin, int64_t, int) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      sum += begin;
    });
  });
  EXPECT_EQ(sum, 20 * 49 * 50 / 2);
}

TEST_F(ThreadPool, ExceptionsReachTheCaller) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(100, 1,
                              [&](int64_t begin, int64_t, int) {
                                if (begin == round) throw std::runtime_error("body");
                              }),
                 std::runtime_error);
  }
  int64_t sum = 0;
  parallel_for(1, 1, [&](int64_t, int64_t, int) { ++sum; });
  EXPECT_EQ(sum, 1);
}

TEST_F(ThreadPool, ManyCallers) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        parallel_for(100, 7, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 6 * 200 * 100);
}

TEST_F(ThreadPool, SleepersWake) {
  std::atomic<int> count{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    parallel_for(64, 1, [&](int64_t, int64_t, int) { ++count; });
  }
  EXPECT_EQ(count, 20 * 64);
}

TEST_F(ThreadPool, SmallWorkIsOnePiece) {
  EXPECT_EQ(choose_chunk(1000, 1.0), 1000);  // 1 µs
  EXPECT_EQ(choose_chunk(0, 1.0), 1);
  EXPECT_LT(choose_chunk(1 << 20, 1.0), 1 << 20);
  EXPECT_EQ(choose_chunk(8, 1e6), 1);  // few heavy indices
}

}  // namespace
}  // namespace tenon::runtime
