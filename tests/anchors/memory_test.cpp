// The order of reads and writes, and memory that arguments share: every read sees what stood there
// when the function read it; a tensor argument keeps the value that it had at the call.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <numeric>

#include "paths.h"

namespace tenon::anchors {
namespace {

using Floats = std::vector<float>;

// Calls `fn` on every path that knows arguments, each time on fresh memory: `memory` is what the
// arguments of `places` borrow (first element, shape).
struct Place {
  int64_t first;
  std::vector<int64_t> dims;
  bool writable;
};
void expect_writes(const Function& fn, const Floats& memory, const std::vector<Place>& places,
                   const std::vector<std::vector<double>>& results, const Floats& after) {
  Layouts layouts;
  for (const Place& place : places) {
    const Shape shape(place.dims.begin(), place.dims.end());
    layouts.push_back(place.writable ? BufferLayout(f32, shape) : TensorLayout(f32, shape));
  }
  Floats now = memory;
  Tensors inputs;
  for (const Place& place : places) {
    inputs.push_back(Tensor::borrow(now.data() + place.first, f32, place.dims));
  }
  for (const Path& path : paths_of(fn, inputs, layouts)) {
    if (path.name == "eager" || path.name == "folded") continue;
    SCOPED_TRACE(path.name);
    std::copy(memory.begin(), memory.end(), now.begin());
    try {
      const Tensors got = path.run();
      ASSERT_EQ(got.size(), results.size());
      for (size_t i = 0; i < got.size(); ++i) expect_values(got[i], results[i]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    EXPECT_EQ(now, after);
  }
}
Place buffer(std::vector<int64_t> dims, int64_t first = 0) {
  return {first, std::move(dims), true};
}
Place reads(std::vector<int64_t> dims, int64_t first = 0) {
  return {first, std::move(dims), false};
}

// MAX 11 and PyTorch 1.5: the memory of a written argument is also that of another one.
TEST(SharedMemory, ReadOnlyArgumentsKeepTheirValue) {
  const Function store_sum = [](const Tensors& x) {
    x[0].store(x[1] + 1);
    return Tensors{x[0] + x[1]};
  };
  expect_writes(store_sum, {1, 2, 3}, {buffer({3}), reads({3})}, {{3, 5, 7}}, {2, 3, 4});
  const Function copy = [](const Tensors& x) {
    x[0].store(x[1]);
    return Tensors{x[0] * 1};
  };
  expect_writes(copy, {1, 2, 3, 4}, {buffer({3}, 1), reads({3}, 0)}, {{1, 2, 3}}, {1, 1, 2, 3});
  expect_writes(copy, {1, 2, 3, 4}, {buffer({3}, 0), reads({3}, 1)}, {{2, 3, 4}}, {2, 3, 4, 4});
  const Function doubled = [](const Tensors& x) {
    x[0].store(x[1] * 2);
    return Tensors{x[1]};
  };
  expect_writes(doubled, {1, 2, 3}, {buffer({3}), reads({3})}, {{1, 2, 3}}, {2, 4, 6});
  // The value that y has at the call counts, however far the written memory reaches into it.
  const Function in_place = [](const Tensors& x) {
    Tensor a = x[0];
    a += 1;
    return Tensors{a * x[1]};
  };
  expect_writes(in_place, {1, 1, 1, 1}, {buffer({3}, 0), reads({3}, 1)}, {{2, 2, 2}}, {2, 2, 2, 1});
}

// The new value of each is the memory of the other.
TEST(SharedMemory, WrittenArgumentsTradePlaces) {
  const Function trade = [](const Tensors& x) {
    const Tensor old = reshape(reshape(x[0], {3, 1}), {3});
    x[0].store(x[1]);
    x[1].store(old);
    return Tensors{x[0] * 1};
  };
  expect_writes(trade, {1, 2, 3, 4, 5, 6}, {buffer({3}, 0), buffer({3}, 3)}, {{4, 5, 6}},
                {4, 5, 6, 1, 2, 3});
}

TEST(SharedMemory, TwoWrittenArgumentsAreRefused) {
  Floats memory{1, 2, 3, 4};
  const auto program =
      compile([](Tensor a, Tensor b) { a.store(b + 1), b.store(a * 2); },
              {.argument_names = {"a", "b"}})(BufferLayout(f32, {3}), BufferLayout(f32, {3}));
  try {
    program(Tensor::borrow(memory.data(), f32, {3}), Tensor::borrow(memory.data() + 1, f32, {3}));
    ADD_FAILURE() << "ran";
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[argument_overlap]"), std::string::npos) << text;
    EXPECT_NE(text.find("writable arguments a and b"), std::string::npos) << text;
  }
  EXPECT_EQ(memory, (Floats{1, 2, 3, 4}));
  // Side by side is not overlap.
  const auto two = compile([](Tensor a, Tensor b) { a.store(b + 1), b.store(a * 2); })(
      BufferLayout(f32, {2}), BufferLayout(f32, {2}));
  two(Tensor::borrow(memory.data(), f32, {2}), Tensor::borrow(memory.data() + 2, f32, {2}));
  EXPECT_EQ(memory, (Floats{4, 5, 8, 10}));
}

// MAX 18: in-place operators write through; memory that may not be written is refused.
TEST(Writes, ReachTheMemoryOrAreRefused) {
  expect_writes(
      [](const Tensors& x) {
        Tensor c = x[0];
        c += 1;
        c *= 2;
        return Tensors{c + 0};
      },
      {1, 2, 3}, {buffer({3})}, {{4, 6, 8}}, {4, 6, 8});
  Floats memory{1, 2, 3};
  const auto program = compile([](Tensor c) { c += 1; })(BufferLayout(f32, {3}));
  const Tensor fixed = Tensor::borrow(memory.data(), f32, {3}, nullptr, false);
  EXPECT_THROW(program(fixed), ValueError);
  EXPECT_EQ(memory, (Floats{1, 2, 3}));
}

// B069: an update that reads the same array at other positions.
TEST(Writes, ReadAtOtherPositions) {
  const Function f = [](const Tensors& in) {
    Tensor x = in[0];
    x += x["::-1"];
    return Tensors{x * 1};
  };
  expect_writes(f, {1, 2, 3, 4}, {buffer({4})}, {{5, 5, 5, 5}}, {5, 5, 5, 5});
  const Function g = [](const Tensors& in) {
    Tensor x = in[0];
    x.store(x * 2);
    x += x["::-1"];
    return Tensors{x * 1};
  };
  expect_writes(g, {1, 2, 3, 4}, {buffer({4})}, {{10, 10, 10, 10}}, {10, 10, 10, 10});
  Floats line(1000), wanted(1000, 999);
  std::iota(line.begin(), line.end(), 0.0f);
  expect_writes(f, line, {buffer({1000})}, {std::vector<double>(1000, 999)}, wanted);
  const Function transposed = [](const Tensors& in) {
    const Tensor& x = in[0];
    x.store(transpose(x) + x * 10);
    return Tensors{};
  };
  const Function keep = [transposed](const Tensors& in) {
    transposed(in);
    return Tensors{in[0] + 0};
  };
  expect_writes(keep, {1, 2, 3, 4}, {buffer({2, 2})}, {{11, 23, 32, 44}}, {11, 23, 32, 44});
}

// B126: an overlapping copy reads the whole source first.
TEST(Writes, OverlappingWindows) {
  const Function shift = [](const Tensors& in) {
    Tensor x = in[0];
    x["1:"] = Operand(x["0:-1"]);
    return Tensors{x + 0};
  };
  expect_writes(shift, {0, 1, 2, 3}, {buffer({4})}, {{0, 0, 1, 2}}, {0, 0, 1, 2});
  const Function back = [](const Tensors& in) {
    Tensor x = in[0];
    x["0:-1"] = Operand(x["1:"]);
    return Tensors{x + 0};
  };
  expect_writes(back, {0, 1, 2, 3}, {buffer({4})}, {{1, 2, 3, 3}}, {1, 2, 3, 3});
  Floats big(64 * 33), moved(64 * 33);
  std::iota(big.begin(), big.end(), 0.0f);
  for (size_t i = 0; i < big.size(); ++i) moved[i] = i < 33 ? big[i] : big[i - 33];
  expect_writes(shift, big, {buffer({64, 33})}, {std::vector<double>(moved.begin(), moved.end())},
                moved);
  // Windows written one after another overlap (B109).
  const Function add_windows = [](const Tensors& in) {
    Tensor x = in[0];
    for (int64_t o : {0, 3, 6}) x[{Slice(), Slice(o, o + 4)}] += ones({2, 4});
    return Tensors{x + 0};
  };
  const Floats row{1, 1, 1, 2, 1, 1, 2, 1, 1, 1};
  Floats both = row;
  both.insert(both.end(), row.begin(), row.end());
  expect_writes(add_windows, Floats(20, 0), {buffer({2, 10})},
                {std::vector<double>(both.begin(), both.end())}, both);
}

// B020, B025, B076, B101: values read before a write keep what they read.
TEST(Writes, ReadsBeforeThem) {
  expect_writes(
      [](const Tensors& x) {
        Tensor dst = x[0], src = x[1];
        dst["0:"] = Operand(src["0:"]);
        src += 1;
        return Tensors{src + 0, dst + 0};
      },
      {0, 0, 0, 1, 2, 3}, {buffer({3}, 0), buffer({3}, 3)}, {{2, 3, 4}, {1, 2, 3}},
      {1, 2, 3, 2, 3, 4});
  expect_writes(
      [](const Tensors& x) {
        const Tensor& a = x[0];
        const Tensor y = a * a;
        a.store(a * a + 1);
        return Tensors{y, a + 0};
      },
      {1, 2, 3}, {buffer({3})}, {{1, 4, 9}, {2, 5, 10}}, {2, 5, 10});
  expect_writes(
      [](const Tensors& x) {
        Tensor a = x[0];
        const Tensor z = matmul(a, x[1]);
        a[{0, 1}] = 100;
        return Tensors{z, argmin(transpose(a))};
      },
      {1, 2, 3, 4, 1, 0, 0, 1}, {buffer({2, 2}), reads({2, 2}, 4)}, {{1, 2, 3, 4}, {0}},
      {1, 100, 3, 4, 1, 0, 0, 1});
  expect_writes(
      [](const Tensors& x) {
        const Tensor& y = x[0];
        const Tensor i = cast(x[1][0], i64);
        const Tensor twice = dynamic_slice(y, {i}, {1}) + dynamic_slice(y, {i}, {1});
        y.store(dynamic_slice_update(y, twice, {i}));
        return Tensors{y + 0};
      },
      {1.5, 7, 0}, {buffer({2}), reads({1}, 2)}, {{3, 7}}, {3, 7, 0});
}

// B055: what a program returned is its next argument; nothing is reused while someone reads it.
TEST(Results, AreArgumentsOfTheNextCall) {
  constexpr int64_t kSize = 1 << 16;
  const auto shift = compile([](const Tensor& buffer, const Tensor& fresh) {
    return concatenate({buffer[Slice(kSize / 2, std::nullopt)], fresh});
  });
  Tensor line = zeros({kSize}, i32);
  for (int i = 0; i < 10; ++i) {
    const Tensor before = line;
    line = shift(line, full({kSize / 2}, i + 1, i32));
    EXPECT_EQ(sum(line["0:32768"]).item<int64_t>(), i * kSize / 2);
    EXPECT_EQ(sum(line["32768:"]).item<int64_t>(), (i + 1) * kSize / 2);
    EXPECT_EQ(before[0].get().item<int32_t>(), std::max(i - 1, 0));
  }
}

// B021 and B088: tensors made from values hold copies; results live as long as they are held.
TEST(Results, AreValues) {
  for (const size_t size : {1, 16, 64, 100, 100000}) {
    Floats host(size, 1);
    const Tensor x = tensor(host);
    const auto f = compile([](const Tensor& a) { return std::pair(a + 1, a); });
    const auto [first, same] = f(x);
    host[0] = 9;
    const auto [second, again] = f(x * 2);
    EXPECT_EQ(x.to_vector<float>()[0], 1);
    EXPECT_EQ(first.to_vector<float>()[0], 2);
    EXPECT_EQ(same.to_vector<float>()[0], 1);
    EXPECT_EQ(second.to_vector<float>()[size - 1], 3);
    EXPECT_EQ(again.to_vector<float>()[size - 1], 2);
  }
}

// B086 and PyTorch check 25: programs neither change the caller's float mode nor suffer from it.
TEST(FloatMode, IsTheProgramsOwn) {
  const auto program = compile([](const Tensor& x) { return x * 2.0f; })(TensorLayout(f32, {"n"}));
  const Tensor tiny = tensor(Floats(37, 1e-40f));
  const unsigned before = _mm_getcsr();
  program(tiny);
  EXPECT_EQ(_mm_getcsr() & 0xffc0u, before & 0xffc0u);
  _mm_setcsr(before | 0x8040u);  // flush to zero, denormals are zero
  const Tensor got = program(tiny);
  const unsigned during = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(during & 0x8040u, 0x8040u);
  expect_values(got, std::vector<double>(37, double(1e-40f) * 2));
}

}  // namespace
}  // namespace tenon::anchors
