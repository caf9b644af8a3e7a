#include "tenon/base/of_thread.h"

#include <atomic>

namespace tenon {

size_t thread_number() {
  static std::atomic<size_t> next{0};
  static thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace tenon
