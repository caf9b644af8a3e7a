#include "tenon/base/of_thread.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tenon {
namespace {

struct Numbers {
  std::vector<int> values;
  void clear() { values.clear(); }
};

TEST(Reused, IsTheSameObjectOneAfterAnother) {
  Numbers* first = nullptr;
  {
    const Reused<Numbers> numbers;
    first = &*numbers;
    first->values.push_back(1);
  }
  const Reused<Numbers> numbers;
  EXPECT_EQ(&*numbers, first);
  EXPECT_TRUE((*numbers).values.empty());
  EXPECT_GT((*numbers).values.capacity(), 0u);
}

TEST(Reused, WorkInsideOtherWorkGetsAnother) {
  const Reused<Numbers> outer;
  (*outer).values = {1, 2};
  {
    const Reused<Numbers> inner;
    EXPECT_NE(&*inner, &*outer);
    EXPECT_TRUE((*inner).values.empty());
  }
  EXPECT_EQ((*outer).values, (std::vector<int>{1, 2}));
}

TEST(Reused, IsThereInDestructorsAtTheEndOfAThread) {
  int sum = 0;
  struct Late {
    int* sum = nullptr;
    ~Late() {
      const Reused<Numbers> numbers;
      (*numbers).values = {3, 4};
      for (const int value : (*numbers).values) *sum += value;
    }
  };
  std::thread([&] {
    thread_local Late late;
    late.sum = &sum;
    const Reused<Numbers> numbers;
    (*numbers).values = {1};
  }).join();
  EXPECT_EQ(sum, 7);
}

}  // namespace
}  // namespace tenon
