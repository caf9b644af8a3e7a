#include "tenon/base/recycled.h"

#include <array>
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
    return list.first == nullptr ? nullptr : pop(list);
  }
  bool give(void* block, size_t size) {
    List& list = lists_[size];
    if ((list.count + 1) * size * kUnit > kKeptBytes) return false;
    list.first = ::new (block) Free{list.first};
    ++list.count;
    return true;
  }

 private:
  static void* pop(List& list) {
    Free* block = list.first;
    list.first = block->next;
    --list.count;
    return block;
  }

  std::array<List, kRecycledBytes / kUnit + 1> lists_{};
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
