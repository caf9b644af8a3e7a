// Freed blocks of memory, kept for the next request of about their size. In front stand blocks that
// calls take and give back without a lock; a list behind them, under a lock, holds what was not
// asked for again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tenon::runtime {

struct Block {
  void* data = nullptr;
  size_t size = 0;
};

// 64 blocks in eight lines of eight. A thread begins with its own line and goes on to those of
// other threads: it finds its own blocks first, and what one thread frees serves any other. A block
// is one word, which comes or goes at once, so nobody waits.
class FrontBlocks {
 public:
  static constexpr size_t kLines = 8;  // shared by threads when there are more
  static constexpr size_t kBlocks = 64;
  static constexpr size_t kUnit = 512;  // sizes are multiples of it, places of 64

  // A block of `size` to five fourths of it; null when none is there.
  Block take(size_t size);
  bool give(Block block);  // false when there is no room, or for a block of 2 GB or more
  std::vector<Block> take_all();

 private:
  using Word = std::atomic<uint64_t>;  // place and units of a block; 0 for none
  struct alignas(64) Line {
    std::array<Word, kBlocks / kLines> words{};
    // Where the blocks last given to these words are, for leak checkers, which read no words.
    std::array<std::atomic<void*>, kBlocks / kLines> places{};
  };
  std::array<Line, kLines> lines_;
};

class BlockCache {
 public:
  using Destroy = void (*)(Block);

  // Keeps up to `limit` bytes, and 512 blocks in the list; what has been there longest goes first.
  BlockCache(size_t limit, Destroy destroy) : limit_(limit), destroy_(destroy) {}
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // A block of `size` to five fourths of it; null when none is kept. Without a lock when one stands
  // in front.
  Block take(size_t size);
  // Without a lock when the front has room and the limit allows; else all of the front goes to the
  // list.
  void give(Block block);
  void clear();

  struct Stats {
    uint64_t missed;  // requests that nothing kept could serve
    uint64_t taken;
    size_t bytes;  // kept
  };
  Stats stats() const;

 private:
  Block take_listed(size_t size);
  std::vector<Block> drop_oldest();

  const size_t limit_;
  const Destroy destroy_;
  FrontBlocks front_;
  alignas(64) std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> missed_{0};
  std::mutex mutex_;
  std::vector<Block> list_;  // oldest first; under the lock
};

}  // namespace tenon::runtime
