#include "tenon/runtime/shared_lines.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>

namespace tenon::runtime {
namespace {

// Arrays of these sizes end where the last page may not be read.
TEST(SharedLines, ReadsWhatTheArraysHaveAndNothingElse) {
  constexpr size_t kPage = 4096;
  constexpr size_t kRoom = 160 * kPage;
  auto* map = static_cast<std::byte*>(
      mmap(nullptr, kRoom + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(map, MAP_FAILED);
  std::memset(map, 7, kRoom);
  ASSERT_EQ(mprotect(map + kRoom, kPage, PROT_NONE), 0);
  for (const int64_t bytes : {0, 1, 63, 64, 65, 262143, 262144, 262145, 600001}) {
    const std::array<Array, 2> arrays = {
        Array(), Array::borrow(DType::kU8, {bytes}, map + kRoom - bytes, nullptr, false)};
    read_together(arrays);
  }
  munmap(map, kRoom + kPage);
}

}  // namespace
}  // namespace tenon::runtime
