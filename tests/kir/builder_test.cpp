#include "tenon/kir/builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/base/error.h"

namespace tenon::kir {
namespace {

// The lines of the printed kernel between the header and the closing brace.
std::string body(const Kernel& kernel) {
  std::string text = print(kernel, true);
  size_t from = text.find('\n') + 1;
  return text.substr(from, text.rfind('}') - from);
}

TEST(Builder, FoldsConstantsExactly) {
  Kernel k;
  Builder b(k);
  auto f = [&](double v) { return b.constant_float(Type::kF32, v); };
  EXPECT_EQ(b.add(f(1), f(2))->imm_float, 3);
  EXPECT_EQ(b.mul(f(1e30), f(1e30))->imm_float, INFINITY);
  EXPECT_EQ(b.unary(Op::kNeg, f(0)), f(-0.0));
  EXPECT_NE(f(0), f(-0.0));
  EXPECT_EQ(b.binary(Op::kDiv, f(1), f(3))->imm_float, 1.0f / 3.0f);
  EXPECT_EQ(b.constant_int(Type::kI8, 200)->imm_int, -56);
  EXPECT_EQ(b.add(b.constant_int(Type::kI8, 127), b.constant_int(Type::kI8, 1))->imm_int, -128);
  EXPECT_EQ(b.convert(Op::kFToS, Type::kI32, f(1e20))->imm_int, INT32_MAX);
  EXPECT_EQ(b.convert(Op::kFToU, Type::kI8, f(-3))->imm_int, 0);
  EXPECT_EQ(b.convert(Op::kZExt, Type::kI64, b.constant_int(Type::kI8, -1))->imm_int, 255);
  EXPECT_EQ(b.convert(Op::kFTrunc, Type::kBF16, f(1.00390625))->imm_float, 1.0);
  EXPECT_EQ(b.cmp(Pred::kFLt, f(NAN), f(1)), b.boolean(false));
  EXPECT_EQ(b.unary(Op::kClz, b.constant_int(Type::kI32, 1))->imm_int, 31);
  EXPECT_EQ(b.binary(Op::kUMulHi, b.i64(-1), b.i64(-1))->imm_int, -2);
}

TEST(Builder, LeavesAmbiguousMulAddToRunTime) {
  Kernel k;
  Builder b(k);
  auto f = [&](double v) { return b.constant_float(Type::kF32, v); };
  EXPECT_EQ(b.ternary(Op::kMulAdd, f(2), f(3), f(1))->imm_float, 7);
  Val inexact = b.ternary(Op::kMulAdd, f(1 + 0x1p-23), f(1 + 0x1p-23), f(-1 - 0x1p-22));
  EXPECT_EQ(inexact->op, Op::kMulAdd);
}

TEST(Builder, KeepsWhatIeeeForbidsToSimplify) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kF32, false);
  Val v = b.load(x, b.i64(0));
  auto f = [&](double c) { return b.constant_float(Type::kF32, c); };
  EXPECT_NE(b.add(v, f(0.0)), v);  // -0 + 0 is +0
  EXPECT_EQ(b.add(v, f(-0.0)), v);
  EXPECT_EQ(b.sub(v, f(0.0)), v);
  EXPECT_EQ(b.mul(v, f(1)), v);
  EXPECT_EQ(b.mul(v, f(0))->op, Op::kMul);
  EXPECT_EQ(b.sub(v, v)->op, Op::kSub);
  EXPECT_EQ(b.cmp(Pred::kEq, v, v)->op, Op::kCmp);
}

TEST(Builder, SharesAndHoists) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kF32, false);
  uint32_t y = b.add_buffer("y", DType::kF32, true);
  Val n = b.dim("n");
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val i) {
    b.loop(b.i64(0), n, {.vector = true}, [&](Val j) {
      Val base = b.mul(i, n);
      Val index = b.add(base, j);
      Val scale = b.load(x, i);
      Val v = b.load(x, index);
      EXPECT_EQ(v, b.load(x, b.add(j, b.mul(n, i))));
      b.store(y, index, b.mul(v, b.unary(Op::kExp, scale)));
    });
  });
  verify(k);
  EXPECT_EQ(body(k), R"(  for i in parallel begin..end {
    %0 = mul d0, i : i64
    %1 = load b0[i] : f32
    %2 = exp %1 : f32
    for j in vector 0..d0 {
      %3 = add j, %0 : i64
      %4 = load b0[%3] : f32
      %5 = mul %4, %2 : f32
      store b1[%3], %5
    }
  }
)");
}

TEST(Builder, KeepsLoadsOfWrittenBuffersAndGuardedOnesInPlace) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kF32, false);
  uint32_t y = b.add_buffer("y", DType::kF32, true);
  Val n = b.dim("n");
  Val zero = b.i64(0);
  b.loop(zero, n, {}, [&](Val i) {
    Val first = b.load(y, zero);
    EXPECT_NE(first, b.load(y, zero));
    b.store(y, i, first);
    b.if_then(b.cmp(Pred::kSLt, zero, n), [&] { b.store(y, zero, b.load(x, zero)); });
  });
  verify(k);
  EXPECT_EQ(body(k), R"(  %0 = cmp slt 0, d0 : i64
  for i in 0..d0 {
    %1 = load b1[0] : f32
    %2 = load b1[0] : f32
    store b1[i], %1
    if %0 {
      %3 = load b0[0] : f32
      store b1[0], %3
    }
  }
)");
}

TEST(Builder, MovesDivisionsOnlyPastKnownDivisors) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kI32, false);
  uint32_t y = b.add_buffer("y", DType::kI32, true);
  b.loop(b.i64(0), b.dim("n"), {}, [&](Val i) {
    Val d = b.load(x, b.i64(0));
    Val unsafe = b.binary(Op::kSDiv, b.load(x, b.i64(1)), d);
    Val safe = b.binary(Op::kSDiv, d, b.constant_int(Type::kI32, 7));
    EXPECT_EQ(b.depth_of(unsafe), 1);
    EXPECT_EQ(b.depth_of(safe), 0);
    b.store(y, i, b.add(unsafe, safe));
  });
  verify(k);
}

TEST(Builder, PlacesReductionsBeforeTheLoopThatUsesThem) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kF32, false);
  uint32_t y = b.add_buffer("y", DType::kF32, true);
  Val n = b.dim("n");
  b.loop(b.i64(0), n, {.vector = true}, [&](Val i) {
    Val sum = nullptr;
    uint64_t outer = b.serial(0);
    b.at_depth(0, [&] {
      EXPECT_EQ(b.depth(), 0);
      CarriedSpec carried[] = {{b.constant_float(Type::kF32, 0), Combine::kAdd}};
      sum = b.loop(b.i64(0), n, {.vector = true}, carried, [&](Val j, std::span<const Val> c) {
        return std::vector<Val>{b.add(c[0], b.load(x, j))};
      })[0];
    });
    EXPECT_EQ(b.serial(0), outer);
    b.store(y, i, b.mul(b.load(x, i), sum));
  });
  verify(k);
  EXPECT_EQ(body(k), R"(  %1 = for i in vector 0..d0 carry (%0 = 0.0 : f32 add) {
    %2 = load b0[i] : f32
    %3 = add %0, %2 : f32
    next %3
  }
  for j in vector 0..d0 {
    %4 = load b0[j] : f32
    %5 = mul %4, %1 : f32
    store b1[j], %5
  }
)");
}

TEST(Builder, RefusesValuesOfClosedBlocksAndMixedTypes) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kF32, false);
  Val inner = nullptr;
  b.loop(b.i64(0), b.i64(4), {}, [&](Val i) { inner = b.load(x, i); });
  EXPECT_THROW(b.unary(Op::kNeg, inner), InternalError);
  EXPECT_THROW(b.add(b.i64(1), b.constant_int(Type::kI32, 1)), InternalError);
}

TEST(Builder, RegistersTheNamesOfScratchOffsets) {
  Kernel k;
  Builder b(k);
  b.add_scratch("a", DType::kF32, Dim("n") * Dim(2));
  uint32_t second = b.add_scratch("b", DType::kF64, 3);
  auto at = [](int64_t n) { return [n](std::string_view) { return std::optional<int64_t>(n); }; };
  EXPECT_EQ(k.buffers[second].offset.eval(at(5)), 64);
  EXPECT_EQ(k.buffers[second].offset.eval(at(9)), 128);
  EXPECT_EQ(k.scratch_bytes.eval(at(9)), 192);
  ASSERT_EQ(k.dims.size(), 2u);
  EXPECT_EQ(k.dims[0].symbol(), "n");
  EXPECT_EQ(k.dims[1], k.buffers[second].offset);
}

}  // namespace
}  // namespace tenon::kir
