#include "tenon/base/literal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/base/half.h"

namespace tenon {
namespace {

DType dtype_at(int i) { return static_cast<DType>(i); }

TEST(Literal, IsZeroedAlignedAndNeverNull) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {0}, {3, 0, 2}, {1}, {5, 3}}) {
      Literal value(dtype_at(i), dims);
      ASSERT_NE(value.data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(value.data()) % 64, 0u);
      EXPECT_EQ(value.count(), element_count(dims));
      EXPECT_EQ(value.bytes(), static_cast<size_t>(value.count()) * size_of(dtype_at(i)));
      for (int64_t k = 0; k < value.count(); ++k) EXPECT_EQ(value.get_double(k), 0.0);
      EXPECT_TRUE(value.same(Literal(dtype_at(i), dims)));
    }
  }
  EXPECT_EQ(Literal(f32, {}).count(), 1);
}

TEST(Literal, RefusesBadShapes) {
  EXPECT_THROW(Literal(f32, {-1}), ValueError);
  EXPECT_THROW(Literal(f32, {int64_t{1} << 62}), ValueError);
  EXPECT_THROW(Literal(f32, {int64_t{1} << 40, int64_t{1} << 40}), ValueError);
  EXPECT_THROW(Literal(u8, {int64_t{1} << 61}), ValueError);
  EXPECT_EQ(Literal(f32, {int64_t{1} << 62, 0}).count(), 0);
  Literal value(f32, {2});
  EXPECT_THROW(value.get_double(2), IndexError);
  EXPECT_THROW(value.set_int(-1, 0), IndexError);
}

TEST(Literal, ElementsReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    Literal value(dtype_at(i), {3});
    value.set_int(1, 1);
    EXPECT_EQ(value.get_int(0), 0) << name(dtype_at(i));
    EXPECT_EQ(value.get_int(1), 1) << name(dtype_at(i));
    EXPECT_EQ(value.get_double(1), 1.0) << name(dtype_at(i));
    value.set_double(2, 1.0);
    EXPECT_EQ(value.get_int(2), 1) << name(dtype_at(i));
  }
}

TEST(Literal, ConvertsAsStated) {
  Literal bytes(i8, {1});
  bytes.set_int(0, 300);
  EXPECT_EQ(bytes.get_int(0), 44);
  bytes.set_double(0, 300.0);
  EXPECT_EQ(bytes.get_int(0), 127);
  bytes.set_double(0, -1.9);
  EXPECT_EQ(bytes.get_int(0), -1);
  bytes.set_double(0, std::nan(""));
  EXPECT_EQ(bytes.get_int(0), 0);
  Literal wide(u64, {1});
  wide.set_double(0, 0x1p64);
  EXPECT_EQ(wide.get_int(0), -1);
  wide.set_double(0, -1.0);
  EXPECT_EQ(wide.get_int(0), 0);
  Literal longs(i64, {1});
  longs.set_double(0, 0x1p63);
  EXPECT_EQ(longs.get_int(0), std::numeric_limits<int64_t>::max());
  // One rounding only: the last bit decides.
  Literal brain(bf16, {1});
  brain.set_int(0, (int64_t{1} << 62) + (int64_t{1} << 54) + 1);
  EXPECT_EQ(brain.as<uint16_t>()[0], bf16_from_float(0x1.02p62f));
  Literal single(f32, {1});
  single.set_int(0, (int64_t{1} << 62) + (int64_t{1} << 38) + 1);
  EXPECT_EQ(single.as<float>()[0], 0x1.000002p62f);
  single.set_int(0, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(single.as<float>()[0], -0x1p63f);
}

TEST(Literal, ScalarsRefuseWhatTheyCannotHold) {
  EXPECT_EQ(Literal::scalar(f32, 0.1).get_double(0), static_cast<double>(0.1f));
  EXPECT_TRUE(std::isnan(Literal::scalar(bf16, std::nan("")).get_double(0)));
  EXPECT_TRUE(std::isinf(Literal::scalar(f16, HUGE_VAL).get_double(0)));
  EXPECT_THROW(Literal::scalar(f16, 1e6), ValueError);
  EXPECT_THROW(Literal::scalar(f32, 1e300), ValueError);
  EXPECT_THROW(Literal::scalar(i32, 0.5), ValueError);
  EXPECT_THROW(Literal::scalar(i64, 0x1p63), ValueError);
  EXPECT_THROW(Literal::scalar(u8, -1), ValueError);
  EXPECT_THROW(Literal::scalar(i8, std::nan("")), ValueError);
  EXPECT_THROW(Literal::scalar(bool_, 2), ValueError);
  EXPECT_THROW(Literal::scalar_int(u8, 256), ValueError);
  EXPECT_THROW(Literal::scalar_int(u64, -1), ValueError);
  EXPECT_THROW(Literal::scalar_int(f32, (1 << 24) + 1), ValueError);
  EXPECT_THROW(Literal::scalar_int(f16, 70000), ValueError);
  EXPECT_THROW(Literal::scalar_int(f64, std::numeric_limits<int64_t>::max()), ValueError);
  EXPECT_EQ(Literal::scalar_int(f64, std::numeric_limits<int64_t>::min()).get_double(0), -0x1p63);
  EXPECT_EQ(Literal::scalar_int(f32, 1 << 24).get_double(0), 0x1p24);
  EXPECT_EQ(Literal::scalar_int(bool_, 1).get_int(0), 1);
  EXPECT_THROW(Literal::scalar_int(bool_, -1), ValueError);
}

TEST(Literal, BorrowsWithoutCopying) {
  auto owner = std::make_shared<std::vector<float>>(6, 2.0f);
  Literal value = Literal::borrow(f32, {2, 3}, owner->data(), owner);
  EXPECT_EQ(value.as<float>(), owner->data());
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(value.get_double(5), 2.0);
  EXPECT_NE(Literal::borrow(f32, {0}, nullptr, nullptr).data(), nullptr);
  EXPECT_THROW(Literal::borrow(f32, {1}, nullptr, nullptr), ValueError);
}

TEST(Literal, DescribesAndStrides) {
  std::vector<int64_t> dims = {4, 2};
  EXPECT_EQ(describe(f32, dims), "f32[4, 2]");
  EXPECT_EQ(describe(bool_, {}), "bool[]");
  EXPECT_EQ(contiguous_strides(dims), (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(contiguous_strides({}).empty());
}

}  // namespace
}  // namespace tenon
