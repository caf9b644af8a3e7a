#include "tenon/kir/index.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tenon/kir/evaluate.h"

namespace tenon::kir {
namespace {

// A nest of three loops with the given bounds around `emit`.
void nest(Builder& b, const std::vector<Dim>& bounds,
          const std::function<void(std::vector<Val>)>& emit, std::vector<Val> vars = {}) {
  if (vars.size() == bounds.size()) return emit(vars);
  b.loop(b.i64(0), b.dim(bounds[vars.size()]), {}, [&](Val v) {
    auto inner = vars;
    inner.push_back(v);
    nest(b, bounds, emit, inner);
  });
}

TEST(Index, SplitsSumsByKnownRanges) {
  Kernel k;
  Builder b(k);
  nest(b, {10, 64}, [&](std::vector<Val> v) {
    Val sum = b.add(b.mul(v[0], b.i64(64)), v[1]);
    EXPECT_EQ(b.index_div(sum, 64), v[0]);
    EXPECT_EQ(b.index_rem(sum, 64), v[1]);
    EXPECT_EQ(b.index_div(sum, 1), sum);
    EXPECT_EQ(b.index_rem(sum, 1), b.i64(0));
    EXPECT_EQ(b.index_div(v[1], 64), b.i64(0));
    EXPECT_EQ(b.index_div(sum, 128), b.index_div(v[0], 2));
    EXPECT_EQ(b.index_rem(sum, 640), sum);
    EXPECT_EQ(b.index_div(v[0], 4)->op, Op::kLShr);
    EXPECT_EQ(b.index_rem(v[0], 4)->op, Op::kAnd);
    EXPECT_EQ(b.index_div(b.index_div(v[1], 3), 5), b.index_div(v[1], 15));
  });
}

TEST(Index, SplitsSymbolicStrides) {
  Kernel k;
  Builder b(k);
  Dim n("n"), m("m");
  nest(b, {Dim("r"), n, m}, [&](std::vector<Val> v) {
    Val flat = b.add(b.mul(b.add(b.mul(v[0], b.dim(n)), v[1]), b.dim(m)), v[2]);
    EXPECT_EQ(b.index_rem(flat, m), v[2]);
    EXPECT_EQ(b.index_div(flat, n * m), v[0]);
    EXPECT_EQ(b.index_rem(b.index_div(flat, m), n), v[1]);
  });
}

TEST(Index, TakesBoundsThatAreStated) {
  Kernel k;
  Builder b(k);
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val i) {
    EXPECT_EQ(b.index_div(i, 100)->op, Op::kUDiv);
    b.set_bound(i, 100);
    EXPECT_EQ(b.index_div(i, 100), b.i64(0));
    EXPECT_EQ(b.index_rem(i, 100), i);
    Val hi = b.binary(Op::kSMin, b.add(i, b.i64(8)), b.dim("n"));
    b.loop(i, hi, {}, [&](Val j) { EXPECT_EQ(b.index_rem(j, "n"), j); });
  });
}

TEST(Index, GuardsDivisorsThatMayBeZero) {
  Kernel k;
  Builder b(k);
  uint32_t x = b.add_buffer("x", DType::kI64, false);
  uint32_t y = b.add_buffer("y", DType::kI64, true);
  Val index = b.load(x, b.i64(0));
  b.store(y, b.i64(0), b.add(b.index_div(index, "n"), b.index_rem(index, "n")));
  int64_t in = 5, out = -1, n = 0, status = 0;
  void* buffers[] = {&in, &out};
  evaluate(k, {buffers, &n, nullptr, &status}, 0, 1);
  EXPECT_EQ(out, 5);
}

// Random sums over loops: what comes out simplified has the value of plain arithmetic.
TEST(Index, AgreesWithPlainArithmetic) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const int64_t kStrides[] = {1, 2, 3, 4, 6, 8, 12, 24, 64};
  for (int round = 0; round < 300; ++round) {
    Kernel k;
    Builder b(k);
    uint32_t out = b.add_buffer("out", DType::kI64, true);
    std::vector<Dim> bounds = {1 + pick(6), Dim("n"), 1 + pick(9)};
    int64_t n = 1 + pick(5);
    int64_t strides[] = {kStrides[pick(9)], kStrides[pick(9)], kStrides[pick(9)]};
    bool symbolic = pick(2) == 0;
    Dim divisor = pick(2) == 0 ? Dim(1 + pick(30)) : Dim("n") * Dim(1 + pick(4));
    int64_t offset = pick(5);
    int64_t mismatches = 0;
    nest(b, bounds, [&](std::vector<Val> v) {
      Val a = b.i64(offset);
      for (size_t d = 0; d < 3; ++d) {
        Dim stride = symbolic && d == 0 ? Dim("n") * Dim(strides[d]) : Dim(strides[d]);
        a = b.add(a, b.mul(v[d], b.dim(stride)));
      }
      Val plain = b.dim(divisor);
      Val wrong = b.binary(
          Op::kOr, b.cmp(Pred::kNe, b.index_div(a, divisor), b.binary(Op::kUDiv, a, plain)),
          b.cmp(Pred::kNe, b.index_rem(a, divisor), b.binary(Op::kURem, a, plain)));
      b.store_if(out, b.i64(0), a, wrong);
    });
    verify(k);
    std::vector<int64_t> dims;
    for (const Dim& d : k.dims) dims.push_back(d.eval([&](auto) { return std::optional(n); }));
    mismatches = -1;
    void* buffers[] = {&mismatches};
    int64_t status = 0;
    evaluate(k, {buffers, dims.data(), nullptr, &status}, 0, 1);
    ASSERT_EQ(mismatches, -1) << "divisor " << divisor.str() << " n " << n << "\n" << print(k);
  }
}

}  // namespace
}  // namespace tenon::kir
