// Products of rows and panels on every level, against the reference evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kernel_harness.h"
#include "tenon/base/half.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::PanelDot;
using kir::Val;

constexpr int64_t kRooms = 32;  // rows that exist in memory

struct Shape {
  PanelDot::Kind kind;
  int64_t rows;
  int64_t words;
  bool add;
  int64_t sums_stride = 32;
  int64_t more = 0;    // words between rows of the left operand besides
  bool lines = false;  // 16 words of every row, then the next 16
  bool next = false;   // says which words are wanted next: far outside the buffer
  int64_t terms = 1;   // panels whose sum is the right operand, line by line
};

// One grid index; everything starts some words into its buffer.
Kernel panel_kernel(const Shape& shape) {
  const bool is_bf16 = shape.kind == PanelDot::Kind::kBF16;
  Kernel kernel;
  kernel.name = "panel";
  Builder b(kernel);
  PanelDot panel;
  panel.kind = shape.kind;
  panel.left = b.add_buffer("left", is_bf16 ? DType::kBF16 : DType::kI8, false);
  panel.right = b.add_buffer("right", is_bf16 ? DType::kBF16 : DType::kI8, false);
  const uint32_t sums = b.add_buffer("sums", is_bf16 ? DType::kF32 : DType::kI32, true);
  panel.rows = shape.rows;
  panel.sums_stride = shape.sums_stride;
  panel.left_stride = shape.lines ? kir::kPanelDotWords : shape.words + shape.more;
  if (shape.lines) panel.left_step = kRooms * kir::kPanelDotWords;
  panel.terms = shape.terms;
  panel.term_step = kir::kPanelDotColumns;
  panel.right_stride = shape.terms * kir::kPanelDotColumns;
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val) {
    b.panel_dot(panel, sums, b.i64(3), b.i64(5), b.i64(7), b.dim(Dim("words")),
                b.boolean(shape.add), shape.next ? b.i64(int64_t{1} << 40) : nullptr);
  });
  return kernel;
}

std::string text(const Shape& s) {
  return fmt::format("{} rows {} words {} add {} stride {}", kir::name(s.kind), s.rows, s.words,
                     s.add, s.sums_stride);
}

std::vector<std::byte> random_bytes(int64_t count, bool is_bf16, std::mt19937& random) {
  std::uniform_int_distribution<int> whole(-128, 127);
  std::uniform_int_distribution<int> few(-8, 8);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t half = bf16_from_float(static_cast<float>(few(random)));
    if (is_bf16) bytes.push_back(static_cast<std::byte>(half & 0xff));
    bytes.push_back(static_cast<std::byte>(is_bf16 ? half >> 8 : whole(random)));
  }
  return bytes;
}

// Small integers: every order of summation gives the same bits.
test::Call random_call(const Shape& shape) {
  std::mt19937 random(static_cast<uint32_t>(shape.rows * 1000 + shape.words));
  const bool is_bf16 = shape.kind == PanelDot::Kind::kBF16;
  const int64_t each = is_bf16 ? 2 : 4;
  test::Call call;
  call.end = 1;
  call.dims = {shape.words};
  call.buffers.push_back(
      random_bytes((5 + kRooms * (shape.words + shape.more)) * each, is_bf16, random));
  call.buffers.push_back(
      random_bytes((7 + shape.terms * shape.words * 32) * each, is_bf16, random));
  const std::vector<float> before(static_cast<size_t>(3 + kRooms * shape.sums_stride), 2.0f);
  call.buffers.push_back(test::bytes_of(before));
  return call;
}

// Rows beyond the panel's may hold anything.
void compare(const Shape& shape, const test::Call& expected, const test::Call& got) {
  const auto want = test::values_of<uint32_t>(expected.buffers[2]);
  const auto have = test::values_of<uint32_t>(got.buffers[2]);
  for (int64_t r = 0; r < shape.rows; ++r) {
    for (int64_t j = 0; j < 32; ++j) {
      const auto k = static_cast<size_t>(3 + r * shape.sums_stride + j);
      ASSERT_EQ(have[k], want[k]) << "row " << r << " column " << j;
    }
  }
}

TEST(Panel, EveryKindAndNumberOfRows) {
  std::vector<Shape> shapes;
  for (auto kind : {PanelDot::Kind::kBF16, PanelDot::Kind::kU8}) {
    for (int64_t rows : {1, 3, 5, 13, 16, 25, 32}) {
      shapes.push_back({kind, rows, 48, rows % 2 == 0, 32, 16});
    }
    shapes.push_back({kind, 6, 0, true, 40, 0});
    shapes.push_back({kind, 20, 160, false, 40, 0});
    shapes.push_back({kind, 3, 48, false, 32, 0, true});
    shapes.push_back({kind, 19, 96, true, 40, 0, true});
    shapes.push_back({kind, 32, 64, true, 32, 16, false, true});
    shapes.push_back({kind, 32, 64, true, 32, 0, true, true});
    for (const int64_t rows : {1, 9, 32}) {
      shapes.push_back({kind, rows, 32, rows == 9, 32, 0, false, false, 3});
    }
  }
  std::vector<Kernel> kernels;
  for (const Shape& shape : shapes) kernels.push_back(panel_kernel(shape));
  std::vector<const Kernel*> all;
  for (const Kernel& kernel : kernels) {
    kir::verify(kernel);
    all.push_back(&kernel);
  }
  for (Isa isa : test::runnable_isas()) {
    const test::LoadedImage image(compile(all, {.isa = isa}), isa);
    for (size_t k = 0; k < shapes.size(); ++k) {
      SCOPED_TRACE(fmt::format("{} {}", name(isa), text(shapes[k])));
      const test::Call call = random_call(shapes[k]);
      compare(shapes[k], test::run_reference(kernels[k], call, true),
              test::run_image(image, k, call));
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
