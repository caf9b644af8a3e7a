#include "tenon/base/dtype.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("float32"), f32);
  EXPECT_EQ(dtype_from_name("bfloat16"), bf16);
  EXPECT_EQ(dtype_from_name("complex64"), c64);
  EXPECT_EQ(dtype_from_name("bool_"), bool_);
  EXPECT_EQ(dtype_from_name("f8"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, EachIsOfOneClass) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto d = static_cast<DType>(i);
    EXPECT_EQ((d == bool_) + is_signed(d) + is_unsigned(d) + is_float(d) + is_complex(d), 1)
        << name(d);
    EXPECT_EQ(is_integer(d), is_signed(d) || is_unsigned(d));
  }
  EXPECT_EQ(size_of(bool_), 1u);
  EXPECT_EQ(size_of(bf16), 2u);
  EXPECT_EQ(size_of(c64), 8u);
  EXPECT_TRUE(is_half(f16) && is_half(bf16) && !is_half(f32));
}

TEST(DType, Promotes) {
  struct Case {
    DType a, b, out;
  } cases[] = {
      {bool_, bool_, bool_}, {bool_, i8, i8},  {bool_, f16, f16}, {i8, u8, i16},   {i16, u8, i16},
      {u32, i8, i64},        {u64, i8, i64},   {u64, u8, u64},    {i32, f16, f16}, {i64, f32, f32},
      {u64, bf16, bf16},     {f16, bf16, f32}, {f16, f32, f32},   {f32, f64, f64}, {f64, c64, c64},
      {i64, c64, c64},       {i32, i64, i64},  {u16, u32, u32},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(promote(c.a, c.b), c.out) << name(c.a) << " " << name(c.b);
    EXPECT_EQ(promote(c.b, c.a), c.out) << name(c.b) << " " << name(c.a);
  }
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(promote(static_cast<DType>(i), static_cast<DType>(i)), static_cast<DType>(i));
  }
}

}  // namespace
}  // namespace tenon
