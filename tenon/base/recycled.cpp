#include "tenon/base/recycled.h"

#include <array>
#include <atomic>
#include <new>

#include "tenon/base/of_thread.h"
#include "tenon/base/sanitizer.h"

namespace tenon {
namespace {

constexpr size_t kUnit = 64;
constexpr size_t kKeptBytes = size_t{64} << 10;
constexpr std::align_val_t kAlign{kUnit};

// Recycled blocks hide uses after their end from the sanitizer.
constexpr bool kRecycle = !kAddressSanitizer;

struct Free {
  Free* next;
};

struct List {
  Free* first = nullptr;
  size_t count = 0;
};

constexpr size_t kSizes = kRecycledBytes / kUnit + 1;

size_t most_of(size_t size) { return kKeptBytes / (size * kUnit); }

// By size, what threads had no room for, in lists of a quarter of what a thread keeps: what one
// thread makes and another drops comes back this way.
class Spare {
 public:
  Free* take(size_t size) {
    for (std::atomic<Free*>& place : places_[size]) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (Free* list = place.exchange(nullptr, std::memory_order_acquire)) return list;
    }
    return nullptr;
  }
  bool give(Free* list, size_t size) {
    for (std::atomic<Free*>& place : places_[size]) {
      Free* none = nullptr;
      if (place.compare_exchange_strong(none, list, std::memory_order_release,
                                        std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  static size_t length(size_t size) { return most_of(size) / 4; }

 private:
  std::array<std::array<std::atomic<Free*>, 4>, kSizes> places_{};
};
constinit Spare spare;

size_t units(size_t bytes) { return bytes == 0 ? 1 : (bytes + kUnit - 1) / kUnit; }

// The blocks that a thread keeps, by size in units.
class Lists {
 public:
  Lists() = default;
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  ~Lists() {
    for (List& list : lists_) {
      while (list.first != nullptr) ::operator delete(pop(list), kAlign);
    }
  }

  void* take(size_t size) {
    List& list = lists_[size];
    if (list.first == nullptr) {
      list.first = spare.take(size);
      list.count = list.first == nullptr ? 0 : Spare::length(size);
    }
    return list.first == nullptr ? nullptr : pop(list);
  }
  bool give(void* block, size_t size) {
    List& list = lists_[size];
    if (list.count == most_of(size) && !give_spare(list, size)) return false;
    list.first = ::new (block) Free{list.first};
    ++list.count;
    return true;
  }

 private:
  static bool give_spare(List& list, size_t size) {
    Free* last = list.first;
    for (size_t i = 1; i < Spare::length(size); ++i) last = last->next;
    Free* const rest = last->next;
    last->next = nullptr;
    if (!spare.give(list.first, size)) {
      last->next = rest;
      return false;
    }
    list.first = rest;
    list.count -= Spare::length(size);
    return true;
  }

  static void* pop(List& list) {
    Free* block = list.first;
    list.first = block->next;
    --list.count;
    return block;
  }

  std::array<List, kSizes> lists_{};
};

}  // namespace

void* take_recycled(size_t bytes) {
  const size_t size = units(bytes);
  if (kRecycle && bytes <= kRecycledBytes) {
    Lists* lists = of_thread<Lists>();
    void* block = lists == nullptr ? nullptr : lists->take(size);
    if (block != nullptr) return block;
  }
  return ::operator new(size* kUnit, kAlign);
}

void give_recycled(void* block, size_t bytes) noexcept {
  if (kRecycle && bytes <= kRecycledBytes) {
    Lists* lists = of_thread<Lists>();
    if (lists != nullptr && lists->give(block, units(bytes))) return;
  }
  ::operator delete(block, kAlign);
}

}  // namespace tenon
