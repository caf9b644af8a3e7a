#include "tenon/runtime/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

TEST(Allocator, EverySizeIsAligned) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4032}, size_t{4033}, size_t{70000},
                       size_t{2} << 20, (size_t{5} << 20) + 1}) {
    std::shared_ptr<void> memory = allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kAlignment, 0u) << bytes;
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(Allocator, ReusesBlocks) {
  release_kept_memory();
  void* first = nullptr;
  {
    std::shared_ptr<void> memory = allocate(10 << 20);
    first = memory.get();
  }
  AllocatorStats before = allocator_stats();
  EXPECT_GE(before.kept_bytes, size_t{10} << 20);
  std::shared_ptr<void> memory = allocate((10 << 20) - 100);
  EXPECT_EQ(memory.get(), first);
  EXPECT_EQ(allocator_stats().reused_blocks, before.reused_blocks + 1);
  // A block much larger than what is asked for is left alone.
  memory.reset();
  std::shared_ptr<void> small = allocate(1 << 20);
  EXPECT_NE(small.get(), first);
}

TEST(Allocator, RefusesTheImpossible) {
  EXPECT_THROW(allocate(size_t{1} << 61), ValueError);
  EXPECT_THROW(allocate(~size_t{0}), ValueError);
}

TEST(Allocator, FromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (size_t i = 0; i < 300; ++i) {
        size_t bytes = (i * 7919 + static_cast<size_t>(t) * 31) % 100000;
        std::shared_ptr<void> memory = allocate(bytes);
        std::memset(memory.get(), t, bytes);
        const auto* bytes_at = static_cast<const unsigned char*>(memory.get());
        for (size_t k = 0; k < bytes; k += 997) ASSERT_EQ(bytes_at[k], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::runtime
