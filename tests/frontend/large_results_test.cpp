// Results too large for the caches are written past them, and rows overlap there: they hold what
// small ones hold.
#include <gtest/gtest.h>

#include <functional>

#include "tenon/base/error.h"
#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/nn.h"
#include "tenon/frontend/random.h"

namespace tenon {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

// Chosen rows of f(x) against f of those rows alone, bit for bit.
void expect_rows_as_alone(const Function& f, const Tensor& x) {
  const int64_t rows = x.shape()[0].value();
  const auto fast = compile(f);
  const Tensor at = tensor(std::vector<int64_t>{0, 1, rows / 2, rows - 2, rows - 1});
  const Tensor of_all = take(fast(x), at);
  const Tensor alone = fast(take(x, at).eval());
  EXPECT_EQ(cast(of_all, f64).to_vector<double>(), cast(alone, f64).to_vector<double>());
}

TEST(LargeResults, RowsAsAlone) {
  for (const auto& [dtype, columns] : std::vector<std::pair<DType, int64_t>>{
           {f32, 4099}, {f64, 1030}, {f16, 2048}, {bf16, 300}, {f32, 8200}}) {
    SCOPED_TRACE(fmt::format("{} {}", name(dtype), columns));
    const int64_t rows = (int64_t{17} << 20) / columns / static_cast<int64_t>(size_of(dtype));
    const Tensor x = cast(random::normal(random::key(5), {rows, columns}) * 3, dtype).eval();
    const Tensor weight = cast(random::normal(random::key(6), {columns}), dtype).eval();
    expect_rows_as_alone([](const Tensor& y) { return softmax(y); }, x);
    expect_rows_as_alone([&](const Tensor& y) { return softmax(y * 2) * weight + y; }, x);
    expect_rows_as_alone([](const Tensor& y) { return log_softmax(y); }, x);
    expect_rows_as_alone([&](const Tensor& y) { return layer_norm(y, weight); }, x);
    expect_rows_as_alone([&](const Tensor& y) { return rms_norm(y, weight); }, x);
  }
}

// Chosen columns of f(x), which stand in strips, against f of so few of them that they take another
// way, bit for bit.
void expect_columns_as_alone(const Function& f, const Tensor& x) {
  const int64_t columns = x.shape().back().value();
  const auto fast = compile(f);
  const Tensor at = tensor(std::vector<int64_t>{0, 70, columns / 2, columns - 2, columns - 1});
  const Tensor of_all = take(fast(x), at, -1);
  const Tensor alone = fast(take(x, at, -1).eval());
  EXPECT_EQ(cast(of_all, f64).to_vector<double>(), cast(alone, f64).to_vector<double>());
}

TEST(LargeResults, ColumnsAsAlone) {
  for (const auto& [dtype, shape] : std::vector<std::pair<DType, Shape>>{{f32, {1, 4099, 1040}},
                                                                         {f64, {3, 130, 515}},
                                                                         {f16, {40, 3, 999}},
                                                                         {bf16, {5, 64, 193}}}) {
    SCOPED_TRACE(fmt::format("{} {}", name(dtype), str(shape)));
    const Tensor x = cast(random::normal(random::key(5), shape) * 3, dtype).eval();
    const Tensor weight = cast(random::normal(random::key(6), {shape[1], 1}), dtype).eval();
    expect_columns_as_alone([](const Tensor& y) { return softmax(y, 1); }, x);
    expect_columns_as_alone([&](const Tensor& y) { return softmax(y * 2, 1) * weight + y; }, x);
    expect_columns_as_alone([](const Tensor& y) { return log_softmax(y, -2); }, x);
    expect_columns_as_alone(
        [&](const Tensor& y) { return layer_norm(y, weight, std::nullopt, 1e-5, 1); }, x);
    expect_columns_as_alone(
        [](const Tensor& y) { return (y - mean(y, 1, true)) * max(y, 1, true); }, x);
  }
}

template <class T>
void expect_turned(int64_t batch, int64_t rows, int64_t columns) {
  SCOPED_TRACE(fmt::format("{} ({}, {}, {})", name(dtype_of<T>()), batch, rows, columns));
  const Tensor x =
      cast(arange(batch * rows * columns), dtype_of<T>()).reshape({batch, rows, columns});
  const auto turned = compile([](const Tensor& y) { return transpose(y, {0, 2, 1}); });
  const Tensor y = turned(x);
  const std::vector<T> got = y.to_vector<T>();
  size_t wrong = 0;
  for (int64_t b = 0, at = 0; b < batch; ++b) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r, ++at) {
        wrong += got[static_cast<size_t>(at)] != static_cast<T>((b * rows + r) * columns + c);
      }
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(LargeResults, Transposes) {
  expect_turned<float>(1, 2048, 2080);
  expect_turned<float>(3, 100, 14000);
  expect_turned<int64_t>(1, 1543, 1400);
  expect_turned<int16_t>(1, 3001, 2999);
}

TEST(LargeResults, RowsTaken) {
  constexpr int64_t kRows = 100;
  constexpr int64_t kColumns = 1000;
  constexpr int64_t kTaken = 4300;
  const Tensor x = arange(kRows * kColumns, f32).reshape({kRows, kColumns});
  std::vector<int64_t> positions;
  for (int64_t k = 0; k < kTaken; ++k) positions.push_back(k * k * 7 % (2 * kRows) - kRows);
  const auto fast = compile([](const Tensor& y, const Tensor& at) { return take(y, at); });
  const std::vector<float> got = fast(x, tensor(positions)).to_vector<float>();
  size_t wrong = 0;
  for (int64_t k = 0; k < kTaken * kColumns; ++k) {
    const int64_t row = (positions[static_cast<size_t>(k / kColumns)] + kRows) % kRows;
    wrong += got[static_cast<size_t>(k)] != static_cast<float>(row * kColumns + k % kColumns);
  }
  EXPECT_EQ(wrong, 0U);
  positions.back() = kRows;
  EXPECT_THROW(fast(x, tensor(positions)).eval(), IndexError);
}

}  // namespace
}  // namespace tenon
