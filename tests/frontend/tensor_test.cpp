#include "tenon/frontend/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tenon/frontend/functions.h"
#include "tenon/frontend/layer.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }
using Floats = std::vector<float>;

TEST(Tensor, LazyUntilRead) {
  const Tensor x = tensor({1.0f, 2.0f, 3.0f});
  const Tensor y = (x * 2.0f + 1) / x;
  EXPECT_EQ(y.dtype(), f32);
  EXPECT_EQ(values(y), (Floats{3.0f, 2.5f, 7.0f / 3}));
  EXPECT_EQ(values(2.0f - x), (Floats{1, 0, -1}));
  EXPECT_EQ(x.sum().item<float>(), 6);
  EXPECT_EQ(values(exp(x - x)), (Floats{1, 1, 1}));
}

TEST(Tensor, EvaluatedPartsAreKept) {
  Tensor x = tensor({1.0f, 2.0f});
  for (int i = 0; i < 64; ++i) x = x + x;  // 2^64 additions without sharing
  const Tensor y = x * 0.0f;
  EXPECT_EQ(values(y), (Floats{0, 0}));
  EXPECT_EQ(values(x)[0], std::ldexp(1.0f, 64));
}

TEST(Tensor, LongChains) {
  Tensor x = tensor({0.0f});
  for (int i = 0; i < 100000; ++i) x = x + 1.0f;
  EXPECT_EQ(x.item<float>(), 100000);
}

TEST(Tensor, PrintsShapeDtypeAndDevice) {
  std::ostringstream out;
  out << tensor({{1.0f, 2.0f}, {3.0f, 4.5f}}) << zeros({0, 3}) << tensor(true)
      << TensorLayout(f32, {"batch", 2});
  EXPECT_EQ(out.str(),
            "tensor([[1.0, 2.0], [3.0, 4.5]], f32[2, 2], cpu)tensor([], f32[0, 3], cpu)"
            "tensor(true, bool[], cpu)TensorLayout(f32, [\"batch\", 2], cpu)");
  EXPECT_EQ(arange(2000).str(), "tensor([0, 1, 2, …, 1997, 1998, 1999], i64[2000], cpu)");
}

TEST(Tensor, WeakNumbers) {
  const Tensor u = tensor<uint8_t>({1, 2});
  const Tensor f = tensor({1.0f});
  EXPECT_EQ((u + 1).dtype(), u8);
  EXPECT_EQ((u + 1.5).dtype(), f32);
  EXPECT_EQ((tensor({true}) + 1).dtype(), i64);
  EXPECT_EQ((f + 1.5).dtype(), f32);
  EXPECT_EQ((cast(f, f16) * 2).dtype(), f16);
  EXPECT_EQ(add(1, 2.5).dtype(), f32);
  const int line = __LINE__ + 1;
  EXPECT_EQ(
      refusal([&] { u + 300; }),
      fmt::format("ValueError: add: 300 has no u8 value [scalar_range]\n  at tensor_test.cpp:{}"
                  "\n  hint: cast the tensor to a dtype that holds the number",
                  line));
  EXPECT_NE(refusal([&] { f + ((1 << 25) + 1); }).find("33554433 has no f32 value"),
            std::string::npos);
  EXPECT_NE(refusal([&] { cast(f, f16) * 1e6; }).find("has no f16 value"), std::string::npos);
  EXPECT_NE(refusal([&] { f + 1e40; }).find("has no f32 value"), std::string::npos);
  EXPECT_EQ(values(f + INFINITY)[0], INFINITY);
}

TEST(Tensor, ErrorsCarryLineAndLayer) {
  const Layer outer("foo");
  std::string text;
  int line = 0;
  {
    const Layer inner("bar");
    EXPECT_EQ(current_layer(), "foo.bar");
    line = __LINE__ + 1;
    text = refusal([] { matmul(tensor({{1.0f, 2.0f}}), tensor({1.0f})); });
  }
  EXPECT_EQ(current_layer(), "foo");
  EXPECT_NE(text.find(fmt::format("at tensor_test.cpp:{} in layer foo.bar", line)),
            std::string::npos)
      << text;
}

TEST(Tensor, Item) {
  EXPECT_EQ(tensor(7).item<int>(), 7);
  EXPECT_EQ(tensor(7).item<double>(), 7.0);
  EXPECT_EQ(refusal([] {
              tensor({1, 2}).item<int>();
            }),
            "ValueError: item: the tensor i32[2] has 2 elements, not one [item_c1]\n"
            "  hint: index it or use to_vector");
  EXPECT_EQ(refusal([] { tensor(1.5f).item<int>(); }),
            "TypeError: item: the tensor is f32, i32 would lose a part of it [item_c2]\n"
            "  hint: cast the tensor first");
  EXPECT_TRUE(static_cast<bool>(tensor(1) == 1));
  EXPECT_EQ(refusal([] { Tensor().eval(); }),
            "TypeError: eval: the tensor has no value yet [operand_c1]");
  EXPECT_NE(refusal([] { Tensor(TensorLayout(f32, {2})) + 1; }).find("is a declaration"),
            std::string::npos);
}

TEST(Tensor, Indexing) {
  const Tensor x = reshape(arange(24, f32), {2, 3, 4});
  EXPECT_EQ(values(x[1][2][3]), Floats{23});
  EXPECT_EQ(values(x[{0, "1:3", -1}]), (Floats{7, 11}));
  EXPECT_EQ(values(x[{Ellipsis, 0}]), (Floats{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(values(x[{1, 0, "::-1"}]), (Floats{15, 14, 13, 12}));
  EXPECT_EQ(values(x[{0, 0, "2:10"}]), (Floats{2, 3}));
  EXPECT_EQ(Tensor(x[{0, 0, "2:1"}]).dims(), (std::vector<int64_t>{0}));
  EXPECT_EQ(Tensor(x[{NewAxis, 0, Slice(1, std::nullopt)}]).dims(),
            (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(values(x[{0, 1, tensor({3, 0})}]), (Floats{7, 4}));
  EXPECT_NE(refusal([&] { x[{0, 0, 0, 0}].get(); }).find("[index_c2]"), std::string::npos);
  EXPECT_NE(refusal([&] { x[5].get(); }).find("IndexError"), std::string::npos);
  EXPECT_NE(refusal([&] { x["a:b"].get(); }).find("[index_c4]"), std::string::npos);
  int rows = 0;
  for (const Tensor& row : x) rows += row.rank() == 2 ? 1 : 0;
  EXPECT_EQ(rows, 2);
}

TEST(Tensor, WritingChangesOneHandle) {
  Tensor x = zeros({2, 3});
  const Tensor old = x;
  x[{0, "1:"}] = tensor({1.0f, 2.0f});
  x[1] = 7;
  x[{Ellipsis, 0}] += 1;
  EXPECT_EQ(values(x), (Floats{1, 1, 2, 8, 7, 7}));
  EXPECT_EQ(values(old), (Floats{0, 0, 0, 0, 0, 0}));
  x += 1;
  EXPECT_EQ(values(x)[0], 2);
  x[tensor(1)] = 0;
  EXPECT_EQ(values(x), (Floats{2, 2, 3, 0, 0, 0}));
}

TEST(Layout, Checks) {
  const TensorLayout layout(f32, {"batch", 2});
  EXPECT_EQ(layout, TensorLayout("float32", {"batch", 2}));
  EXPECT_FALSE(layout == BufferLayout(f32, {"batch", 2}));
  EXPECT_EQ(&as_layout(layout), &layout);
  EXPECT_NE(refusal([] { TensorLayout(f32, {-3}); }).find("dimension 0 is -3"), std::string::npos);
  EXPECT_NE(refusal([] { TensorLayout("float33", {3}); }).find("unknown dtype \"float33\""),
            std::string::npos);
  EXPECT_EQ(refusal([] { as_layout(3.0f); }),
            "TypeError: as_layout: expected a layout, got float: 3.0 [as_layout_c1]");
  EXPECT_EQ(
      refusal([] { as_layout(tensor({1})); }),
      "TypeError: as_layout: expected a layout, got a Tensor, which is a value [as_layout_c1]\n"
      "  hint: pass its .layout()");
  EXPECT_EQ(tensor({1.0f}).layout(), TensorLayout(f32, {1}));
  EXPECT_NE(refusal([] { cpu(1); }).find("cpu(1) does not exist"), std::string::npos);
  EXPECT_NE(refusal([] { Device("gpu"); }).find("no GPU found"), std::string::npos);
}

}  // namespace
}  // namespace tenon
