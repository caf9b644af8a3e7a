// sort, argsort and top_k: NaN, zeros, ties, every dtype, short and long rows, other axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "paths.h"

namespace tenon::anchors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr uint32_t kSeed = 20264;

Tensor floats(DType dtype, const std::vector<double>& values) {
  return cast(tensor(values), dtype).eval();
}

// B155: NaN last whatever its sign, zeros equal, ties as they stood.
TEST(Sorting, NanZerosAndTies) {
  const double negative_nan = std::copysign(kNan, -1.0);
  for (const DType d : {f32, f64, f16, bf16}) {
    expect_on_every_path([](const Tensors& x) { return sort(x[0]); }, {floats(d, {1, kNan, 2, 0})},
                         {0, 1, 2, kNan});
    expect_on_every_path([](const Tensors& x) { return argsort(x[0]); },
                         {floats(d, {kNan, 1, kNan, 0})}, {3, 1, 0, 2});
    expect_on_every_path([](const Tensors& x) { return sort(x[0]); },
                         {floats(d, {negative_nan, kInf, -kInf, 1})}, {-kInf, 1, kInf, kNan});
    expect_on_every_path([](const Tensors& x) { return argsort(x[0]); },
                         {floats(d, {0.0, -0.0, -1, -0.0})}, {2, 0, 1, 3});
    expect_on_every_path([](const Tensors& x) { return sort(x[0]); },
                         {floats(d, {0.0, -0.0, -1, -0.0})}, {-1, 0.0, -0.0, -0.0});
    expect_on_every_path([](const Tensors& x) { return sort(x[0], 0, true); },
                         {floats(d, {1, -0.0, kNan, 0.0, 2, -kInf})},
                         {kNan, 2, 1, -0.0, 0.0, -kInf});
    expect_on_every_path([](const Tensors& x) { return argsort(x[0], 0, true); },
                         {floats(d, {1, 3, 1, kNan, 3})}, {3, 1, 4, 0, 2});
    std::vector<double> many(18, kNan);
    many.back() = 1;
    std::vector<double> wanted(18, kNan);
    wanted[0] = 1;
    expect_on_every_path([](const Tensors& x) { return sort(x[0]); }, {floats(d, many)}, wanted);
  }
}

TEST(Sorting, TopK) {
  const Tensor x = floats(f32, {3, 1, kNan, 3, -2, 7}).eval();
  const auto part = [](int64_t k, bool largest, bool indices) {
    return [=](const Tensors& t) {
      auto [values, at] = top_k(t[0], k, -1, largest);
      return indices ? at : values;
    };
  };
  expect_on_every_path(part(3, true, false), {x}, {kNan, 7, 3});
  expect_on_every_path(part(4, true, true), {x}, {2, 5, 0, 3});
  expect_on_every_path(part(2, false, false), {x}, {-2, 1});
  expect_on_every_path(part(6, false, true), {x}, {4, 1, 0, 3, 5, 2});
  expect_on_every_path(part(0, true, false), {x}, {});
  expect_refused([&] { top_k(x, 7); }, {"ValueError", "top_k", "7", "6", "[top_k_c1]"});
  expect_refused([&] { top_k(x, -1); }, {"ValueError", "top_k", "-1", "[top_k_c1]"});
}

// Long enough for blocks: the ends, ties over blocks, another axis, a last block that is not whole.
TEST(Sorting, TopKOfMany) {
  for (const DType d : {f32, f16, i16, u8}) {
    for (const int64_t n : {4096, 5003}) {
      std::vector<double> values;
      for (int64_t i = 0; i < 2 * n; ++i) values.push_back(static_cast<double>(i * 7919 % 251));
      if (is_float(d)) values[static_cast<size_t>(n - 1)] = kNan;
      const Tensor x = floats(d, values).reshape({2, n}).eval();
      for (const bool largest : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(d), n, largest));
        const Tensor order = argsort(x, 1, largest);
        const Tensor first = order[{":", "0:9"}];
        const std::vector<double> wanted = cast(first, f64).to_vector<double>();
        on_every_path(
            [largest](const Tensors& t) {
              const auto [values, at] = top_k(transpose(t[0]), 9, 0, largest);
              return Tensors{transpose(at), transpose(values),
                             take_along_axis(t[0], transpose(at), 1)};
            },
            {x},
            [&](const Tensors& got) {
              expect_values(got[0], wanted);
              expect_values(got[1], cast(got[2], f64).to_vector<double>());
            });
      }
    }
  }
}

TEST(Sorting, AxesAndNothing) {
  const Tensor x = floats(i32, {3, 1, 2, 9, 7, 8}).reshape({2, 3}).eval();
  expect_on_every_path([](const Tensors& t) { return sort(t[0], 0, true); }, {x},
                       {9, 7, 8, 3, 1, 2});
  expect_on_every_path([](const Tensors& t) { return argsort(transpose(t[0]), 0); }, {x},
                       {1, 1, 2, 2, 0, 0});
  expect_on_every_path([](const Tensors& t) { return sort(swap_axes(t[0] + 1, 0, 1), -1); }, {x},
                       {4, 10, 2, 8, 3, 9});
  expect_on_every_path([](const Tensors& t) { return sort(t[0], 1); }, {zeros({3, 0}).eval()}, {});
  expect_on_every_path([](const Tensors& t) { return argsort(t[0], 0); }, {zeros({0, 2}).eval()},
                       {});
  expect_on_every_path([](const Tensors& t) { return sort(t[0], 1); }, {ones({3, 1}).eval()},
                       {1, 1, 1});
  const Tensor scalar = zeros({}).eval();
  const std::vector<std::string> parts = {"ValueError", "0-d"};
  expect_refused([&] { sort(scalar); }, parts);
  expect_refused([&] { argsort(scalar); }, parts);
  expect_refused([&] { top_k(scalar, 1); }, parts);
}

// Values with many ties and every special one, in rows that each kind of kernel takes.
class Rows : public ::testing::TestWithParam<DType> {};

double value_of(DType d, std::mt19937& rng) {
  const auto small = static_cast<double>(rng() % 200);
  if (d == DType::kBool) return static_cast<double>(rng() % 2);
  if (is_unsigned(d)) return small;
  if (!is_float(d)) return small - 100;
  switch (rng() % 40) {
    case 0: return kNan;
    case 1: return kInf;
    case 2: return -kInf;
    case 3: return -0.0;
    case 4: return 0.0;
    default: return (small - 100) / 8;
  }
}

bool before(double a, double b, bool descending) {
  if (descending) std::swap(a, b);
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

TEST_P(Rows, AgreeWithAStableSort) {
  const DType d = GetParam();
  std::mt19937 rng(kSeed);
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  for (const auto& [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
           {70, 5}, {70, 33}, {3, 64}, {1, 255}, {2, 257}, {1, 5000}, {2, 70001}}) {
    // Pieces and merges, once for each width of bits and of keys.
    if (n > 65536 && d != DType::kBool && d != f16 && d != f32 && d != i64) continue;
    std::vector<double> values;
    for (int64_t i = 0; i < rows * n; ++i) values.push_back(value_of(d, rng));
    // Without -0 a network sorts short rows.
    if (n == 33) std::replace(values.begin(), values.end(), 0.0, 1.0);
    for (const bool descending : {false, true}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", rows, n));
      std::vector<double> sorted;
      std::vector<double> positions;
      for (int64_t row = 0; row < rows; ++row) {
        const double* first = values.data() + row * n;
        std::vector<int64_t> order(static_cast<size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return before(first[a], first[b], descending);
        });
        for (const int64_t at : order) {
          sorted.push_back(first[at]);
          positions.push_back(static_cast<double>(at));
        }
      }
      on_every_path(
          [descending](const Tensors& x) {
            return Tensors{sort(x[0], 1, descending), argsort(x[0], 1, descending)};
          },
          {floats(d, values).reshape({rows, n}).eval()},
          [&](const Tensors& got) {
            expect_values(got[0], sorted);
            expect_values(got[1], positions);
          },
          n == 5000 ? Layouts{TensorLayout(d, {1, "n"})} : Layouts{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rows,
                         ::testing::Values(DType::kBool, i8, i16, i32, i64, u8, u16, u32, u64, f16,
                                           bf16, f32, f64),
                         [](const auto& info) { return std::string(name(info.param)); });

// Keys that differ in every digit, and the ends of the integers.
TEST(Sorting, WideIntegers) {
  std::mt19937_64 rng(kSeed);
  std::vector<int64_t> values = {std::numeric_limits<int64_t>::min(), -1, 0, 1,
                                 std::numeric_limits<int64_t>::max()};
  while (values.size() < 3000) values.push_back(static_cast<int64_t>(rng()));
  std::vector<int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  on_every_path(
      [](const Tensors& x) {
        return Tensors{sort(x[0]), take_along_axis(x[0], argsort(x[0]), 0),
                       flip(sort(x[0].cast(u64)), 0), top_k(x[0], 9).first};
      },
      {tensor(values).eval()},
      [&](const Tensors& got) {
        EXPECT_EQ(got[0].to_vector<int64_t>(), sorted);
        EXPECT_EQ(got[1].to_vector<int64_t>(), sorted);
        const std::vector<uint64_t> down = got[2].to_vector<uint64_t>();
        EXPECT_TRUE(std::is_sorted(down.begin(), down.end(), std::greater<>()));
        EXPECT_EQ(got[3].to_vector<int64_t>(),
                  std::vector<int64_t>(sorted.rbegin(), sorted.rbegin() + 9));
      });
}

}  // namespace
}  // namespace tenon::anchors
