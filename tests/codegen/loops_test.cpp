// Control flow: reductions with every combine, nests of loops, conditions, tables and calls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernel_harness.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::CarriedSpec;
using kir::Combine;
using kir::Kernel;
using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using test::Call;

// Small whole numbers: sums of them are exact in any order.
template <class T>
std::vector<std::byte> whole_numbers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(static_cast<int64_t>(random() % 17) - 8);
  return test::bytes_of(values);
}

Val combine_of(Builder& b, Combine combine, Type type, Val x, Val y) {
  switch (combine) {
    case Combine::kAdd: return b.add(x, y);
    case Combine::kMul: return b.mul(x, y);
    case Combine::kFMin: return b.binary(Op::kFMin, x, y);
    case Combine::kFMax: return b.binary(Op::kFMax, x, y);
    case Combine::kSMin: return b.binary(Op::kSMin, x, y);
    case Combine::kSMax: return b.binary(Op::kSMax, x, y);
    case Combine::kUMin: return b.binary(Op::kUMin, x, y);
    case Combine::kUMax: return b.binary(Op::kUMax, x, y);
    case Combine::kAnd: return b.binary(Op::kAnd, x, y);
    case Combine::kOr: return b.binary(Op::kOr, x, y);
    case Combine::kXor: return b.binary(Op::kXor, x, y);
    case Combine::kNone: break;
  }
  throw std::logic_error(fmt::format("no combine for {}", kir::name(type)));
}

// out[row] = combine over columns of in[row * n + column], starting from 3.
Kernel reduce_rows(DType dtype, Combine combine, int interleave) {
  Kernel kernel;
  kernel.name = fmt::format("reduce_{}_{}", kir::name(combine), name(dtype));
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  Val n = b.dim(Dim("n"));
  Type type = kir::type_of(dtype);
  Val init = kir::is_float(type) ? b.constant_float(type, 3) : b.constant_int(type, 3);
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val row) {
    CarriedSpec carried{init, combine};
    auto total = b.loop(b.i64(0), n, {.vector = true, .interleave = interleave}, {&carried, 1},
                        [&](Val column, std::span<const Val> sum) {
                          Val x = b.load(in, b.add(b.mul(row, n), column));
                          return std::vector<Val>{combine_of(b, combine, type, sum[0], x)};
                        });
    b.store(out, row, total[0]);
  });
  return kernel;
}

template <class T>
void check_reduction(DType dtype, Combine combine) {
  for (int interleave : {0, 1, 4}) {
    Kernel kernel = reduce_rows(dtype, combine, interleave);
    const Kernel* one = &kernel;
    for (Isa isa : test::runnable_isas()) {
      test::LoadedImage image(compile({&one, 1}, {.isa = isa}), isa);
      for (int64_t n = 0; n <= 70; ++n) {
        Call call;
        call.end = 2;
        call.dims = {n};
        call.buffers = {whole_numbers<T>(static_cast<size_t>(2 * n), 1 + static_cast<uint64_t>(n)),
                        std::vector<std::byte>(2 * sizeof(T))};
        Call expected = test::run_reference(kernel, call, true);
        Call got = test::run_image(image, 0, call);
        std::string what;
        ASSERT_TRUE(test::same_values(dtype, got.buffers[1], expected.buffers[1], &what))
            << kernel.name << " of " << n << " on " << name(isa) << ": " << what;
      }
    }
  }
}

TEST(Loops, ReductionsOfFloats) {
  for (Combine combine : {Combine::kAdd, Combine::kFMin, Combine::kFMax}) {
    check_reduction<float>(DType::kF32, combine);
    check_reduction<double>(DType::kF64, combine);
  }
}

TEST(Loops, ReductionsOfIntegers) {
  for (Combine combine :
       {Combine::kAdd, Combine::kMul, Combine::kSMin, Combine::kSMax, Combine::kUMin,
        Combine::kUMax, Combine::kAnd, Combine::kOr, Combine::kXor}) {
    check_reduction<int32_t>(DType::kI32, combine);
    check_reduction<int64_t>(DType::kI64, combine);
    check_reduction<int8_t>(DType::kI8, combine);
  }
}

TEST(Loops, MinimaKeepNaNAndZeros) {
  for (Combine combine : {Combine::kFMin, Combine::kFMax}) {
    Kernel kernel = reduce_rows(DType::kF32, combine, 0);
    std::vector<Call> calls;
    for (size_t n : {1u, 15u, 16u, 37u, 130u}) {
      for (size_t at = 0; at < n; at += 5) {
        std::vector<float> values(n, 3.0f);
        values[at] = NAN;
        Call call;
        call.end = 1;
        call.dims = {static_cast<int64_t>(n)};
        call.buffers = {test::bytes_of(values), std::vector<std::byte>(4)};
        calls.push_back(call);
      }
    }
    test::expect_like_reference(kernel, calls);
  }
}

// The mean and a running index, carried together; one value carried alike by all lanes.
TEST(Loops, SeveralCarriedValues) {
  Kernel kernel;
  kernel.name = "several";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF64, true);
  std::vector<CarriedSpec> carried = {{b.constant_float(Type::kF64, 0), Combine::kAdd},
                                      {b.constant_float(Type::kF32, -INFINITY), Combine::kFMax},
                                      {b.i64(0), Combine::kAdd},
                                      {b.i64(7), Combine::kNone}};
  auto results =
      b.loop(b.begin(), b.end(), {.vector = true}, carried, [&](Val i, std::span<const Val> c) {
        Val x = b.load(in, i);
        return std::vector<Val>{b.add(c[0], b.convert(Op::kFExt, Type::kF64, x)),
                                b.binary(Op::kFMax, c[1], x), b.add(c[2], i), c[3]};
      });
  b.store(out, b.i64(0), results[0]);
  b.store(out, b.i64(1), b.convert(Op::kFExt, Type::kF64, results[1]));
  b.store(out, b.i64(2), b.convert(Op::kSToF, Type::kF64, results[2]));
  b.store(out, b.i64(3), b.convert(Op::kSToF, Type::kF64, results[3]));
  std::vector<Call> calls;
  for (int64_t n : {0, 1, 9, 16, 50, 200}) {
    Call call;
    call.end = n;
    call.buffers = {whole_numbers<float>(static_cast<size_t>(n), 3), std::vector<std::byte>(32)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

// out[j] = sum over k of a[k] * b[k * n + j]: a serial loop with a varying sum in a vector loop.
TEST(Loops, SerialInsideVector) {
  for (int64_t multiple : {1, 8, 64}) {
    Kernel kernel;
    kernel.name = "vecmat";
    Builder b(kernel);
    uint32_t a = b.add_buffer("a", DType::kF32, false);
    uint32_t m = b.add_buffer("m", DType::kF32, false);
    uint32_t out = b.add_buffer("out", DType::kF32, true);
    Val n = b.dim(Dim("n"));
    Val depth = b.dim(Dim("k"));
    b.loop(b.i64(0), n, {.vector = true, .multiple = multiple}, [&](Val j) {
      std::vector<CarriedSpec> carried = {{b.constant_float(Type::kF32, 0)}, {b.i64(0)}};
      auto sum = b.loop(b.i64(0), depth, {}, carried, [&](Val k, std::span<const Val> c) {
        Val product = b.ternary(Op::kMulAdd, b.load(a, k), b.load(m, b.add(c[1], j)), c[0]);
        return std::vector<Val>{product, b.add(c[1], n)};
      });
      b.store(out, j, sum[0]);
    });
    std::vector<Call> calls;
    for (int64_t columns : {64, 128, 1, 9, 33}) {
      if (columns % multiple) continue;
      for (int64_t rows : {0, 1, 5}) {
        Call call;
        call.dims = {columns, rows};
        call.buffers = {whole_numbers<float>(static_cast<size_t>(rows), 1),
                        whole_numbers<float>(static_cast<size_t>(rows * columns), 2),
                        std::vector<std::byte>(static_cast<size_t>(4 * columns))};
        calls.push_back(call);
      }
    }
    test::expect_like_reference(kernel, calls);
  }
}

// A vector loop in a vector loop runs in order: its carried value needs no combine across lanes.
TEST(Loops, VectorInsideVector) {
  Kernel kernel;
  kernel.name = "row_sums";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  Val n = b.dim(Dim("n"));
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val row) {
    CarriedSpec carried{b.constant_float(Type::kF32, 1), Combine::kAdd};
    auto sum = b.loop(
        b.i64(0), n, {.vector = true}, {&carried, 1}, [&](Val column, std::span<const Val> c) {
          return std::vector<Val>{b.add(c[0], b.load(in, b.add(b.mul(row, n), column)))};
        });
    b.store(out, row, sum[0]);
  });
  std::vector<Call> calls;
  for (int64_t rows : {0, 1, 17, 70}) {
    for (int64_t columns : {0, 1, 5}) {
      Call call;
      call.end = rows;
      call.dims = {columns};
      call.buffers = {whole_numbers<float>(static_cast<size_t>(rows * columns), 5),
                      std::vector<std::byte>(static_cast<size_t>(4 * rows))};
      calls.push_back(call);
    }
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Loops, ConstantTripCounts) {
  for (int64_t trip : {0, 1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 40, 64, 100}) {
    Kernel kernel;
    kernel.name = fmt::format("trip_{}", trip);
    Builder b(kernel);
    uint32_t in = b.add_buffer("in", DType::kF32, false);
    uint32_t out = b.add_buffer("out", DType::kF32, true);
    CarriedSpec carried{b.constant_float(Type::kF32, 2), Combine::kAdd};
    auto sum = b.loop(b.i64(0), b.i64(trip), {.vector = true}, {&carried, 1},
                      [&](Val i, std::span<const Val> c) {
                        Val x = b.load(in, i);
                        b.store(out, i, b.mul(x, x));
                        return std::vector<Val>{b.add(c[0], x)};
                      });
    b.store(out, b.i64(trip), sum[0]);
    Call call;
    call.buffers = {whole_numbers<float>(static_cast<size_t>(trip), 6),
                    std::vector<std::byte>(static_cast<size_t>(4 * trip + 4))};
    test::expect_like_reference(kernel, {call});
  }
}

// The index itself as data: in its own type, narrowed, as a float, scaled.
TEST(Loops, IndexAsData) {
  Kernel kernel;
  kernel.name = "iota";
  Builder b(kernel);
  uint32_t wide = b.add_buffer("wide", DType::kI64, true);
  uint32_t narrow = b.add_buffer("narrow", DType::kI8, true);
  uint32_t real = b.add_buffer("real", DType::kF32, true);
  Val scale = b.dim(Dim("scale"));
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val scaled = b.sub(b.i64(5), b.mul(i, scale));
    b.store(wide, i, scaled);
    b.store(narrow, i, b.convert(Op::kIntTrunc, Type::kI8, b.binary(Op::kShl, i, b.i64(2))));
    b.store(real, i, b.convert(Op::kSToF, Type::kF32, b.unary(Op::kNeg, i)));
  });
  std::vector<Call> calls;
  for (int64_t n : {1, 16, 77}) {
    Call call;
    call.end = n;
    call.dims = {-3};
    auto count = static_cast<size_t>(n);
    call.buffers = {std::vector<std::byte>(8 * count), std::vector<std::byte>(count),
                    std::vector<std::byte>(4 * count)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Loops, ConditionsAndScratch) {
  Kernel kernel;
  kernel.name = "scratch";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  uint32_t first = b.add_scratch("first", DType::kF32, Dim("n"));
  uint32_t second = b.add_scratch("second", DType::kF32, Dim("n"));
  Val n = b.dim(Dim("n"));
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](Val row) {
    Val start = b.mul(row, n);
    b.loop(b.i64(0), n, {.vector = true}, [&](Val i) {
      Val x = b.load(in, b.add(start, i));
      b.store(first, i, x);
      b.store(second, i, b.add(x, x));
    });
    b.if_then(b.cmp(Pred::kEq, b.binary(Op::kAnd, row, b.i64(1)), b.i64(0)), [&] {
      b.loop(b.i64(0), n, {.vector = true}, [&](Val i) {
        Val mirrored = b.load(first, b.sub(b.sub(n, b.i64(1)), i));
        b.store(out, b.add(start, i), b.sub(mirrored, b.load(second, i)));
      });
    });
  });
  std::vector<Call> calls;
  for (int64_t n_value : {1, 16, 23, 70}) {
    Call call;
    call.end = 3;
    call.dims.clear();
    for (const Dim& dim : kernel.dims) {
      call.dims.push_back(dim.eval([&](std::string_view) { return n_value; }));
    }
    call.scratch_bytes = kernel.scratch_bytes.eval([&](std::string_view) { return n_value; });
    auto count = static_cast<size_t>(3 * n_value);
    call.buffers = {whole_numbers<float>(count, 8), std::vector<std::byte>(4 * count)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

void check_table(Type type, DType dtype, size_t entries) {
  Kernel kernel;
  kernel.name = fmt::format("table_{}_{}", kir::name(type), entries);
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kI32, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  std::vector<uint64_t> bits(entries);
  uint64_t mask = ~uint64_t{0} >> (64 - kir::bits(type));
  for (size_t k = 0; k < entries; ++k) bits[k] = (0x9e3779b97f4a7c15ull * (k + 1)) & mask;
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](Val i) { b.store(out, i, b.table(type, bits, b.load(in, i))); });
  std::vector<Call> calls;
  for (size_t n : {1u, 16u, 50u, 100u}) {
    std::vector<int32_t> indices(n);
    for (size_t k = 0; k < n; ++k) indices[k] = static_cast<int32_t>(k * 7 % entries);
    Call call;
    call.end = static_cast<int64_t>(n);
    call.buffers = {test::bytes_of(indices), std::vector<std::byte>(n * size_of(dtype))};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Loops, Tables) {
  for (size_t entries : {1u, 7u, 8u, 16u, 20u, 32u, 64u, 128u}) {
    check_table(Type::kF32, DType::kF32, entries);
    check_table(Type::kF64, DType::kF64, entries);
    check_table(Type::kI64, DType::kI64, entries);
    check_table(Type::kI8, DType::kI8, entries);
  }
}

// Work that few lanes need.
TEST(Loops, RarePath) {
  Kernel kernel;
  kernel.name = "rare";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF64, false);
  uint32_t out = b.add_buffer("out", DType::kF64, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val x = b.load(in, i);
    Val large = b.cmp(Pred::kFGt, x, b.constant_float(Type::kF64, 7));
    CarriedSpec carried{x};
    auto result = b.loop(b.i64(0), b.convert(Op::kZExt, Type::kI64, b.any(large)), {},
                         {&carried, 1}, [&](Val, std::span<const Val> c) {
                           return std::vector<Val>{b.select(large, b.unary(Op::kSqrt, x), c[0])};
                         });
    b.store(out, i, result[0]);
  });
  std::vector<Call> calls;
  for (size_t n : {1u, 8u, 9u, 40u, 71u}) {
    Call call;
    call.end = static_cast<int64_t>(n);
    call.buffers = {whole_numbers<double>(n, n), std::vector<std::byte>(8 * n)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Loops, InactiveLanesNeverTrap) {
  for (DType dtype : {DType::kI32, DType::kI64, DType::kI16}) {
    Kernel kernel;
    kernel.name = "remainders";
    Builder b(kernel);
    uint32_t in = b.add_buffer("in", dtype, false);
    uint32_t out = b.add_buffer("out", dtype, true);
    b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
      Val x = b.load(in, i);
      b.store(out, i, b.add(b.binary(Op::kSRem, x, x), b.binary(Op::kUDiv, x, x)));
    });
    std::vector<Call> calls;
    for (size_t n : {1u, 3u, 15u, 17u, 70u}) {
      std::vector<std::byte> ones(n * size_of(dtype));
      for (size_t k = 0; k < ones.size(); k += size_of(dtype)) ones[k] = std::byte{7};
      Call call;
      call.end = static_cast<int64_t>(n);
      call.buffers = {ones, ones};
      calls.push_back(call);
    }
    test::expect_like_reference(kernel, calls);
  }
}

}  // namespace
}  // namespace tenon::codegen
