#include "tenon/runtime/block_cache.h"

#include "tenon/base/of_thread.h"

namespace tenon::runtime {
namespace {

constexpr size_t kMaxListed = 512;

// A word: the place's 48 bits, shifted up by 16; a place is aligned to 64, so 22 bits below are
// free for the size in units.
constexpr int kPlaceShift = 16;
constexpr int kSizeBits = 22;
constexpr uint64_t kSizeMask = (uint64_t{1} << kSizeBits) - 1;

bool fits_word(Block block) {
  const auto place = reinterpret_cast<uintptr_t>(block.data);
  return uint64_t{place} >> (64 - kPlaceShift) == 0 && place % 64 == 0 &&
         block.size / FrontBlocks::kUnit <= kSizeMask && block.size % FrontBlocks::kUnit == 0;
}

uint64_t pack(Block block) {
  return uint64_t{reinterpret_cast<uintptr_t>(block.data)} << kPlaceShift |
         block.size / FrontBlocks::kUnit;
}

Block unpack(uint64_t word) {
  return {reinterpret_cast<void*>(static_cast<uintptr_t>((word & ~kSizeMask) >> kPlaceShift)),
          static_cast<size_t>(word & kSizeMask) * FrontBlocks::kUnit};
}

bool serves(size_t have, size_t size) { return have >= size && have - size <= size / 4; }

}  // namespace

Block FrontBlocks::take(size_t size) {
  const size_t own = thread_number();
  for (size_t i = 0; i < kLines; ++i) {
    Line& line = lines_[(own + i) % kLines];
    while (true) {
      Word* best = nullptr;
      uint64_t best_word = 0;
      for (Word& at : line.words) {
        const uint64_t word = at.load(std::memory_order_relaxed);
        const size_t have = unpack(word).size;
        if (!serves(have, size)) continue;
        if (best == nullptr || have < unpack(best_word).size) {
          best = &at;
          best_word = word;
        }
      }
      if (best == nullptr) break;
      if (best->compare_exchange_strong(best_word, 0, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
        return unpack(best_word);
      }
    }
  }
  return {};
}

bool FrontBlocks::give(Block block) {
  if (!fits_word(block)) return false;
  const size_t own = thread_number();
  for (size_t i = 0; i < kLines; ++i) {
    Line& line = lines_[(own + i) % kLines];
    for (size_t at = 0; at < line.words.size(); ++at) {
      uint64_t none = 0;
      if (line.words[at].load(std::memory_order_relaxed) == 0 &&
          line.words[at].compare_exchange_strong(none, pack(block), std::memory_order_release,
                                                 std::memory_order_relaxed)) {
        line.places[at].store(block.data, std::memory_order_relaxed);
        return true;
      }
    }
  }
  return false;
}

std::vector<Block> FrontBlocks::take_all() {
  std::vector<Block> all;
  for (Line& line : lines_) {
    for (Word& at : line.words) {
      const uint64_t word = at.exchange(0, std::memory_order_acquire);
      if (word != 0) all.push_back(unpack(word));
    }
  }
  return all;
}

Block BlockCache::take(size_t size) {
  Block block = front_.take(size);
  if (block.data == nullptr) block = take_listed(size);
  if (block.data == nullptr) {
    missed_.fetch_add(1, std::memory_order_relaxed);
  } else {
    bytes_.fetch_sub(block.size, std::memory_order_relaxed);
    taken_.fetch_add(1, std::memory_order_relaxed);
  }
  return block;
}

Block BlockCache::take_listed(size_t size) {
  std::lock_guard lock(mutex_);
  size_t best = list_.size();
  for (size_t i = list_.size(); i-- > 0;) {
    const size_t have = list_[i].size;
    if (!serves(have, size)) continue;
    if (best == list_.size() || have < list_[best].size) best = i;
    if (have == size) break;
  }
  if (best == list_.size()) return {};
  const Block block = list_[best];
  list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(best));
  return block;
}

void BlockCache::give(Block block) {
  if (block.size > limit_) return destroy_(block);
  // Counted before it is there, so that `bytes_` is never below what is kept.
  const size_t bytes = bytes_.fetch_add(block.size, std::memory_order_relaxed) + block.size;
  if (bytes <= limit_ && front_.give(block)) return;
  std::vector<Block> dropped;
  {
    std::lock_guard lock(mutex_);
    // In the list they grow old; those that are still asked for come back to the front.
    for (Block front : front_.take_all()) list_.push_back(front);
    list_.push_back(block);
    dropped = drop_oldest();
  }
  for (Block old : dropped) destroy_(old);
}

std::vector<Block> BlockCache::drop_oldest() {
  size_t drop = 0;
  size_t bytes = bytes_.load(std::memory_order_relaxed);
  while (drop < list_.size() && (bytes > limit_ || list_.size() - drop > kMaxListed)) {
    bytes = bytes_.fetch_sub(list_[drop].size, std::memory_order_relaxed) - list_[drop].size;
    ++drop;
  }
  const auto end = list_.begin() + static_cast<std::ptrdiff_t>(drop);
  std::vector<Block> dropped(list_.begin(), end);
  list_.erase(list_.begin(), end);
  return dropped;
}

void BlockCache::clear() {
  std::vector<Block> all = front_.take_all();
  {
    std::lock_guard lock(mutex_);
    all.insert(all.end(), list_.begin(), list_.end());
    list_.clear();
  }
  for (Block block : all) {
    bytes_.fetch_sub(block.size, std::memory_order_relaxed);
    destroy_(block);
  }
}

BlockCache::Stats BlockCache::stats() const {
  return {missed_.load(std::memory_order_relaxed), taken_.load(std::memory_order_relaxed),
          bytes_.load(std::memory_order_relaxed)};
}

}  // namespace tenon::runtime
