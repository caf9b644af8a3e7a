#include "tenon/runtime/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/recycled.h"
#include "tenon/runtime/block_cache.h"
#include "tenon/runtime/thread_pool.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tenon::runtime {
namespace {

constexpr size_t kSmall = kRecycledBytes;
constexpr size_t kPage = size_t{4} << 10;
constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kPopulate = size_t{4} << 20;

size_t rounded(size_t bytes) {
  size_t unit = bytes >= kHuge ? kHuge : bytes >= (size_t{64} << 10) ? kPage : FrontBlocks::kUnit;
  return (bytes + unit - 1) / unit * unit;
}

bool huge_pages() {
  static const bool on = [] {
    const char* text = std::getenv("TENON_HUGE_PAGES");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return on;
}

[[noreturn]] void out_of_memory(size_t bytes) {
  throw ValueError(fmt::format("allocate: no memory for {} bytes", bytes));
}

// Takes the faults now and on all threads: one thread zeroes about 1.5 GB a second.
void populate(Block block) {
  int64_t pieces = static_cast<int64_t>((block.size + kPopulate - 1) / kPopulate);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      size_t offset = static_cast<size_t>(i) * kPopulate;
      // A kernel without this advice takes the faults at the first touch.
      ::madvise(static_cast<char*>(block.data) + offset, std::min(kPopulate, block.size - offset),
                MADV_POPULATE_WRITE);
    }
  });
}

// Null when the system has no such memory; the same for fresh().
Block map_huge(size_t size) {
  void* raw =
      ::mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return {};
  auto address = reinterpret_cast<uintptr_t>(raw);
  uintptr_t begin = (address + kHuge - 1) / kHuge * kHuge;
  if (begin != address) ::munmap(raw, begin - address);
  size_t tail = address + size + kHuge - (begin + size);
  if (tail != 0) ::munmap(reinterpret_cast<void*>(begin + size), tail);
  Block block{reinterpret_cast<void*>(begin), size};
  if (huge_pages()) {
    ::madvise(block.data, size, MADV_HUGEPAGE);
    if (size >= kPopulate) populate(block);
  }
  return block;
}

Block fresh(size_t size) {
  if (size >= kHuge) return map_huge(size);
  return {std::aligned_alloc(kAlignment, size), size};
}

void destroy(Block block) {
  if (block.size >= kHuge) {
    ::munmap(block.data, block.size);
  } else {
    std::free(block.data);
  }
}

size_t keep_limit() {
  if (const char* text = std::getenv("TENON_CACHE_BYTES")) {
    return static_cast<size_t>(std::strtoull(text, nullptr, 10));
  }
  size_t memory = static_cast<size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
                  static_cast<size_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return std::max(memory / 8, size_t{256} << 20);
}

// Never destroyed: arrays in static storage may outlive any other static.
BlockCache& kept() {
  static BlockCache* instance = new BlockCache(keep_limit(), destroy);
  return *instance;
}

}  // namespace

std::shared_ptr<void> allocate(size_t bytes) {
  if (bytes <= kSmall) {
    void* data = take_recycled(bytes);
    return {data, [bytes](void* block) { give_recycled(block, bytes); }, Recycled<std::byte>()};
  }
  if (bytes > (size_t{1} << 62)) out_of_memory(bytes);
  size_t size = rounded(bytes);
  Block block = kept().take(size);
  if (block.data == nullptr) block = fresh(size);
  if (block.data == nullptr) {
    kept().clear();
    block = fresh(size);
  }
  if (block.data == nullptr) out_of_memory(bytes);
  return {block.data, [block](void*) { kept().give(block); }, Recycled<std::byte>()};
}

AllocatorStats allocator_stats() {
  const BlockCache::Stats stats = kept().stats();
  return {stats.missed, stats.taken, stats.bytes};
}
void release_kept_memory() { kept().clear(); }

}  // namespace tenon::runtime
