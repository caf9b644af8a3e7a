// What one call needs while it runs. Taken from a few places without a lock, a thread's own first,
// so that a call allocates nothing but its results.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "tenon/base/of_thread.h"
#include "tenon/runtime/array.h"
#include "tenon/runtime/plan.h"

namespace tenon::runtime {

struct Context {
  std::vector<int64_t> symbols;
  std::array<std::shared_ptr<const Plan>, 4> recent;  // plans of the last sizes, newest first
  std::shared_ptr<void> arena;
  size_t arena_bytes = 0;
  std::vector<void*> pointers;   // the pointer stack of nested programs
  std::vector<Array> arguments;  // of the entry, with what setup appended
  int64_t status = 0;
};

// Up to eight idle contexts; more are made while more threads call, and dropped afterwards.
class ContextList {
 public:
  ContextList() = default;
  ContextList(const ContextList&) = delete;
  ContextList& operator=(const ContextList&) = delete;
  ~ContextList() {
    for (auto& slot : slots_) delete slot.load(std::memory_order_acquire);
  }

  std::unique_ptr<Context> take() {
    for (size_t i = 0; i < slots_.size(); ++i) {
      auto& slot = slots_[(thread_number() + i) % slots_.size()];
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Context* context = slot.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<Context>(context);
      }
    }
    return std::make_unique<Context>();
  }

  void give(std::unique_ptr<Context> context) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      auto& slot = slots_[(thread_number() + i) % slots_.size()];
      Context* none = nullptr;
      if (slot.compare_exchange_strong(none, context.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        context.release();
        return;
      }
    }
  }

 private:
  std::array<std::atomic<Context*>, 8> slots_{};
};

}  // namespace tenon::runtime
