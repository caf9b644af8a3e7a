#include "tenon/base/dims.h"

#include <gtest/gtest.h>

#include <utility>

#include "tenon/base/recycled.h"
#include "tenon/base/sanitizer.h"

namespace tenon {
namespace {

using Sizes = std::vector<int64_t>;

TEST(Dims, AreCopiedAndMovedWithAnyNumberOfSizes) {
  for (const Sizes& sizes :
       {Sizes{}, Sizes{3}, Sizes{1, 2, 3, 4, 5, 6}, Sizes{1, 2, 3, 4, 5, 6, 7}, Sizes(40, 2)}) {
    const Dims dims = sizes;
    EXPECT_EQ(dims.size(), sizes.size());
    EXPECT_EQ(Sizes(dims), sizes);
    EXPECT_TRUE(dims == sizes);
    for (const Sizes& old : {Sizes{9}, Sizes(9, 9)}) {
      Dims copy = old;
      copy = dims;
      EXPECT_EQ(copy, dims);
      copy = *&copy;
      EXPECT_EQ(copy, dims);
      Dims moved = std::move(copy);
      EXPECT_EQ(moved, dims);
      Dims target = old;
      target = std::move(moved);
      EXPECT_EQ(target, dims);
    }
  }
  EXPECT_FALSE(Dims({1, 2}) == Dims({1, 2, 3}));
  EXPECT_FALSE(Dims({1, 2}) == Dims({1, 3}));
}

TEST(Recycled, HandsBlocksOutAgain) {
  for (const size_t bytes : {0u, 1u, 64u, 65u, 4096u, 4097u}) {
    void* block = take_recycled(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    void* other = take_recycled(bytes);
    EXPECT_NE(block, other);
    give_recycled(other, bytes);
    give_recycled(block, bytes);
  }
  if (kAddressSanitizer) return;
  void* block = take_recycled(100);
  give_recycled(block, 100);
  EXPECT_EQ(take_recycled(128), block);
  give_recycled(block, 128);
}

}  // namespace
}  // namespace tenon
