#include "tenon/runtime/array.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"
#include "tenon/runtime/dlpack.h"

namespace tenon::runtime {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was raised";
}

TEST(Array, ShapesAndMemory) {
  Array a = Array::copy_of<float>(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(a.describe(), "f32[2, 3]");
  EXPECT_EQ(a.count(), 6);
  Array b = a.reshaped({3, 2});
  EXPECT_EQ(b.data(), a.data());
  EXPECT_EQ(b.as<float>()[5], 6);
  EXPECT_EQ(message_of([&] { a.reshaped({4}); }),
            "reshape: f32[2, 3] has 6 elements, f32[4] has 4 [reshape_count]");
  EXPECT_FALSE(Array().valid());
  EXPECT_TRUE(Array::empty(DType::kF64, {0, 5}).valid());
  EXPECT_EQ(Array::empty(DType::kF64, {}).count(), 1);
  EXPECT_THROW(Array::empty(DType::kF32, {-1}), ValueError);
  EXPECT_EQ(message_of([] {
              Array::copy_of<float>(DType::kF32, {3}, {1, 2});
            }),
            "copy_of: f32[3] takes 12 bytes, got 8 [copy_of_count]");
}

TEST(Array, LiteralsShareMemory) {
  Literal literal(DType::kI32, {2});
  literal.set_int(1, 7);
  Array a = Array::from_literal(literal);
  EXPECT_EQ(a.as<int32_t>()[1], 7);
  EXPECT_EQ(a.data(), literal.data());
  EXPECT_EQ(message_of([&] { a.mutable_data(); }),
            "array: the memory of i32[2] is read-only\n  hint: copy it first");
  Literal back = a.to_literal();
  EXPECT_EQ(back.data(), literal.data());
}

TEST(Array, DlpackRoundTripOfEveryDtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    Array a = Array::empty(dtype, {3, 1, 2});
    DLManagedTensor* managed = a.to_dlpack();
    EXPECT_EQ(managed->dl_tensor.data, a.data());
    Array b = Array::from_dlpack(managed);
    EXPECT_EQ(b.dtype(), dtype);
    EXPECT_EQ(b.dims(), a.dims());
    EXPECT_EQ(b.data(), a.data());
  }
}

// A foreign tensor that counts its deletions.
struct Foreign {
  DLManagedTensor managed{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<float> data = std::vector<float>(64, 2.0f);
  int deleted = 0;

  Foreign(std::vector<int64_t> s, std::vector<int64_t> st)
      : shape(std::move(s)), strides(std::move(st)) {
    managed.dl_tensor = {data.data(),
                         {kDlCpu, 0},
                         static_cast<int32_t>(shape.size()),
                         {kDlFloat, 32, 1},
                         shape.data(),
                         strides.empty() ? nullptr : strides.data(),
                         0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* t) { ++static_cast<Foreign*>(t->manager_ctx)->deleted; };
  }
};

TEST(Array, DlpackImport) {
  Foreign right({2, 1, 3}, {3, 99, 1});
  {
    Array a = Array::from_dlpack(&right.managed);
    Array b = a;
    a = Array();  // the copy alone keeps the memory
    EXPECT_EQ(right.deleted, 0);
    EXPECT_EQ(b.data(), right.data.data());
  }
  EXPECT_EQ(right.deleted, 1);

  Foreign strided({2, 3}, {1, 2});
  EXPECT_EQ(message_of([&] { Array::from_dlpack(&strided.managed); }),
            "from_dlpack: f32[2, 3] is not dense and row-major [dlpack_strides]\n"
            "  hint: make it contiguous first");
  EXPECT_EQ(strided.deleted, 1);

  Foreign device({2}, {});
  device.managed.dl_tensor.device.device_type = 2;
  EXPECT_EQ(message_of([&] { Array::from_dlpack(&device.managed); }),
            "from_dlpack: expected a tensor in CPU memory (device type 1), got device type 2 "
            "[dlpack_device]\n  hint: copy it to the CPU first");

  Foreign dtype({2}, {});
  dtype.managed.dl_tensor.dtype.bits = 24;
  EXPECT_THROW(Array::from_dlpack(&dtype.managed), ValueError);
  Foreign lanes({2}, {});
  lanes.managed.dl_tensor.dtype.lanes = 4;
  EXPECT_THROW(Array::from_dlpack(&lanes.managed), ValueError);
  Foreign odd({2}, {});
  odd.managed.dl_tensor.byte_offset = 2;
  EXPECT_THROW(Array::from_dlpack(&odd.managed), ValueError);
  Foreign negative({-2}, {});
  EXPECT_THROW(Array::from_dlpack(&negative.managed), ValueError);
  EXPECT_EQ(negative.deleted, 1);
  EXPECT_THROW(Array::from_dlpack(nullptr), ValueError);

  Foreign none({0, 3}, {});
  none.managed.dl_tensor.data = nullptr;
  EXPECT_TRUE(Array::from_dlpack(&none.managed).valid());
}

}  // namespace
}  // namespace tenon::runtime
