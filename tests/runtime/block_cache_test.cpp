#include "tenon/runtime/block_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

namespace tenon::runtime {
namespace {

constexpr size_t kUnit = FrontBlocks::kUnit;

std::atomic<size_t> destroyed{0};

Block make(size_t size) { return {std::aligned_alloc(64, size), size}; }
void destroy(Block block) {
  destroyed += block.size;
  std::free(block.data);
}

class BlockCaches : public testing::Test {
 protected:
  BlockCaches() : cache_(100 * kUnit, destroy) { destroyed = 0; }
  ~BlockCaches() override { cache_.clear(); }
  BlockCache cache_;
};

TEST_F(BlockCaches, GiveBackWhatServes) {
  const Block block = make(10 * kUnit);
  cache_.give(block);
  EXPECT_EQ(cache_.take(11 * kUnit).data, nullptr);
  EXPECT_EQ(cache_.take(7 * kUnit).data, nullptr);
  const Block taken = cache_.take(8 * kUnit);
  EXPECT_EQ(taken.data, block.data);
  EXPECT_EQ(taken.size, block.size);
  EXPECT_EQ(cache_.take(8 * kUnit).data, nullptr);
  EXPECT_EQ(cache_.stats().missed, 3u);
  EXPECT_EQ(cache_.stats().taken, 1u);
  EXPECT_EQ(cache_.stats().bytes, 0u);
  destroy(taken);
}

TEST_F(BlockCaches, TakeTheSmallestThatServes) {
  const Block large = make(10 * kUnit), small = make(9 * kUnit);
  cache_.give(large);
  cache_.give(small);
  const Block first = cache_.take(8 * kUnit), second = cache_.take(8 * kUnit);
  EXPECT_EQ(first.data, small.data);
  EXPECT_EQ(second.data, large.data);
  cache_.give(first);
  cache_.give(second);
}

TEST_F(BlockCaches, KeepNoMoreThanTheLimitAndTheNewest) {
  for (size_t i = 0; i < 1000; ++i) {
    cache_.give(make((1 + i % 30) * kUnit));
    EXPECT_LE(cache_.stats().bytes, 100 * kUnit);
  }
  const size_t before = destroyed;
  cache_.give(make(101 * kUnit));
  EXPECT_EQ(destroyed, before + 101 * kUnit);
  const Block block = make(90 * kUnit);
  cache_.give(block);
  const Block taken = cache_.take(90 * kUnit);
  EXPECT_EQ(taken.data, block.data);
  cache_.give(taken);
  EXPECT_LE(cache_.stats().bytes, 100 * kUnit);
  cache_.clear();
  EXPECT_EQ(cache_.stats().bytes, 0u);
}

TEST_F(BlockCaches, ServeMoreBlocksThanStandInFront) {
  BlockCache cache(size_t{1} << 30, destroy);
  constexpr size_t kMany = 3 * FrontBlocks::kBlocks;
  std::vector<Block> blocks;
  for (size_t i = 0; i < kMany; ++i) blocks.push_back(make(20 * kUnit));
  for (int round = 0; round < 3; ++round) {
    for (const Block block : blocks) cache.give(block);
    EXPECT_EQ(cache.stats().bytes, kMany * 20 * kUnit);
    for (Block& block : blocks) {
      block = cache.take(20 * kUnit);
      ASSERT_NE(block.data, nullptr);
    }
    EXPECT_EQ(cache.take(20 * kUnit).data, nullptr);
  }
  std::sort(blocks.begin(), blocks.end(), [](Block a, Block b) { return a.data < b.data; });
  for (size_t i = 1; i < kMany; ++i) EXPECT_NE(blocks[i].data, blocks[i - 1].data);
  for (const Block block : blocks) cache.give(block);
  cache.clear();
  EXPECT_EQ(destroyed, kMany * 20 * kUnit);
}

TEST_F(BlockCaches, KeepBlocksThatNoWordHolds) {
  // Nothing is read or written there.
  static size_t dropped;
  dropped = 0;
  BlockCache cache(~size_t{0} >> 1, [](Block block) { dropped += block.size; });
  const Block large{reinterpret_cast<void*>(uintptr_t{1} << 40), size_t{5} << 30};
  const Block far{reinterpret_cast<void*>(uintptr_t{1} << 50), size_t{1} << 20};
  cache.give(large);
  cache.give(far);
  EXPECT_EQ(cache.take(size_t{5} << 30).data, large.data);
  EXPECT_EQ(cache.take(size_t{1} << 20).data, far.data);
  cache.give(large);
  cache.clear();
  EXPECT_EQ(dropped, large.size);
}

TEST_F(BlockCaches, FromManyThreads) {
  std::atomic<size_t> made{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Block> held;
      for (int i = 0; i < 2000; ++i) {
        if (held.size() > random() % 4) {
          const Block block = held.back();
          held.pop_back();
          for (size_t k = 0; k < block.size / sizeof(size_t); k += 64) {
            ASSERT_EQ(static_cast<size_t*>(block.data)[k], block.size + t);
          }
          cache_.give(block);
          continue;
        }
        const size_t size = (8 + random() % 8) * kUnit;
        Block block = cache_.take(size);
        if (block.data == nullptr) {
          block = make(size);
          made += size;
        }
        for (size_t k = 0; k < block.size / sizeof(size_t); k += 64) {
          static_cast<size_t*>(block.data)[k] = block.size + t;
        }
        held.push_back(block);
      }
      for (const Block block : held) cache_.give(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache_.stats().bytes, 100 * kUnit);
  cache_.clear();
  EXPECT_EQ(destroyed, made);
  EXPECT_EQ(cache_.stats().bytes, 0u);
}

}  // namespace
}  // namespace tenon::runtime
