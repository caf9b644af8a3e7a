// Loads and stores of every shape: contiguous, reversed, strided, through indices, predicated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

#include "kernel_harness.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::Op;
using kir::Pred;
using kir::Type;
using kir::Val;
using test::Call;

constexpr DType kStored[] = {DType::kBool, DType::kI8,  DType::kU16, DType::kF16,
                             DType::kF32,  DType::kI32, DType::kF64, DType::kI64};

// Distinct values; 0 and 1 for booleans.
std::vector<std::byte> ramp(DType dtype, size_t count) {
  size_t size = size_of(dtype);
  std::vector<std::byte> bytes(count * size);
  for (size_t k = 0; k < count; ++k) {
    uint64_t value = dtype == DType::kBool ? (k * k / 3) % 2 : 3 * k + 1;
    std::memcpy(bytes.data() + k * size, &value, size);
  }
  return bytes;
}

// out[to(i)] = in[from(i)] for i in begin..end.
Kernel copy_kernel(DType dtype, const std::function<Val(Builder&, Val)>& from,
                   const std::function<Val(Builder&, Val)>& to) {
  Kernel kernel;
  kernel.name = fmt::format("copy_{}", name(dtype));
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", dtype, false);
  uint32_t out = b.add_buffer("out", dtype, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](Val i) { b.store(out, to(b, i), b.load(in, from(b, i))); });
  return kernel;
}

void check_copy(DType dtype, int64_t in_per_index, int64_t out_per_index,
                const std::function<Val(Builder&, Val)>& from,
                const std::function<Val(Builder&, Val)>& to) {
  Kernel kernel = copy_kernel(dtype, from, to);
  std::vector<Call> calls;
  for (int64_t length : {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 70, 133}) {
    Call call;
    call.end = length;
    call.buffers = {ramp(dtype, static_cast<size_t>(length * in_per_index)),
                    ramp(dtype, static_cast<size_t>(length * out_per_index))};
    call.dims = {length, 3};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

Val same(Builder&, Val i) { return i; }
// Element n-1-i of n, the first of the kernel's dims.
Val backwards(Builder& b, Val i) { return b.sub(b.sub(b.dim(Dim("n")), b.i64(1)), i); }

// Wider values out of bytes: side by side, two bytes apart from their neighbours, all in one place.
TEST(Memory, ValuesOfBytes) {
  for (kir::Type type : {kir::Type::kI8, kir::Type::kI16, kir::Type::kI32, kir::Type::kF16,
                         kir::Type::kBF16, kir::Type::kF32, kir::Type::kI64}) {
    const int64_t width = kir::bits(type) / 8;
    for (int64_t stride : {int64_t{0}, width, width + 2}) {
      Kernel kernel;
      kernel.name = fmt::format("bytes_{}_{}", kir::name(type), stride);
      Builder b(kernel);
      const uint32_t in = b.add_buffer("in", DType::kU8, false);
      const bool is_float = kir::is_float(type);
      const DType stored = is_float ? DType::kF32 : DType::kI64;
      const uint32_t out = b.add_buffer("out", stored, true);
      b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
        Val value = b.load_bytes(in, b.add(b.mul(i, b.i64(stride)), b.i64(1)), type);
        if (is_float && width < 4) value = b.convert(Op::kFExt, kir::Type::kF32, value);
        if (!is_float && width < 8) value = b.convert(Op::kSExt, kir::Type::kI64, value);
        b.store(out, i, value);
      });
      std::vector<Call> calls;
      for (int64_t length : {0, 1, 7, 16, 33, 70}) {
        Call call;
        call.end = length;
        const int64_t read = std::max<int64_t>(length - 1, 0) * stride + width + 1;
        call.buffers = {ramp(DType::kU8, static_cast<size_t>(read)),
                        ramp(stored, static_cast<size_t>(length))};
        calls.push_back(call);
      }
      test::expect_like_reference(kernel, calls);
    }
  }
}

TEST(Memory, Contiguous) {
  for (DType dtype : kStored) check_copy(dtype, 1, 1, same, same);
}

TEST(Memory, Reversed) {
  for (DType dtype : kStored) {
    check_copy(dtype, 1, 1, backwards, same);
    check_copy(dtype, 1, 1, same, backwards);
  }
}

TEST(Memory, ConstantStrides) {
  for (int64_t stride : {2, 3, 5}) {
    auto strided = [&](Builder& b, Val i) {
      return b.add(b.mul(i, b.i64(stride)), b.i64(stride - 1));
    };
    for (DType dtype : {DType::kF32, DType::kI8, DType::kF64, DType::kU16, DType::kBool}) {
      check_copy(dtype, stride, 1, strided, same);
      check_copy(dtype, 1, stride, same, strided);
    }
  }
}

TEST(Memory, SymbolicStride) {
  auto strided = [](Builder& b, Val i) {
    b.dim(Dim("n"));
    return b.mul(i, b.dim(Dim("s")));
  };
  for (DType dtype : {DType::kF32, DType::kI8, DType::kF64}) {
    check_copy(dtype, 3, 1, strided, same);
    check_copy(dtype, 1, 3, same, strided);
  }
}

TEST(Memory, Quotients) {
  auto third = [](Builder& b, Val i) { return b.binary(Op::kUDiv, i, b.i64(3)); };
  auto rest = [](Builder& b, Val i) { return b.binary(Op::kURem, i, b.i64(5)); };
  check_copy(DType::kF32, 1, 1, third, same);
  for (int64_t length : {5, 64, 77}) {
    Kernel kernel = copy_kernel(DType::kF32, rest, same);
    Call call;
    call.end = length;
    call.buffers = {ramp(DType::kF32, 5), ramp(DType::kF32, static_cast<size_t>(length))};
    test::expect_like_reference(kernel, {call});
  }
}

TEST(Memory, PiecesOfTheGrid) {
  Kernel kernel = copy_kernel(DType::kF32, same, same);
  std::vector<Call> calls;
  for (int64_t begin : {0, 1, 5, 40}) {
    for (int64_t end : {40, 41, 57, 100}) {
      Call call;
      call.begin = begin;
      call.end = end;
      call.buffers = {ramp(DType::kF32, 100), std::vector<std::byte>(400)};
      calls.push_back(call);
    }
  }
  test::expect_like_reference(kernel, calls);
}

// out[i] = in[index[i]], out2[index[i]] = in[i]
void check_indexed(DType index_dtype) {
  Kernel kernel;
  kernel.name = fmt::format("indexed_{}", name(index_dtype));
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t indices = b.add_buffer("index", index_dtype, false);
  uint32_t gathered = b.add_buffer("gathered", DType::kF32, true);
  uint32_t scattered = b.add_buffer("scattered", DType::kF32, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val at = b.load(indices, i);
    if (index_dtype != DType::kI64) {
      at = b.convert(index_dtype == DType::kU8 ? Op::kZExt : Op::kSExt, Type::kI64, at);
    }
    b.store(gathered, i, b.load(in, at));
    b.store(scattered, at, b.load(in, i));
  });
  std::mt19937_64 random(7);
  std::vector<Call> calls;
  for (size_t length : {1u, 7u, 16u, 33u, 70u, 200u}) {
    std::vector<int64_t> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::byte> stored(length * size_of(index_dtype));
    for (size_t k = 0; k < length; ++k) {
      std::memcpy(stored.data() + k * size_of(index_dtype), &order[k], size_of(index_dtype));
    }
    Call call;
    call.end = static_cast<int64_t>(length);
    call.buffers = {ramp(DType::kF32, length), stored, ramp(DType::kF32, length),
                    ramp(DType::kF32, length)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Memory, ThroughIndices) {
  for (DType dtype : {DType::kU8, DType::kI32, DType::kI64}) check_indexed(dtype);
}

// A window of `in` with padding around it: out[i] = 0 <= i - 4 < n ? in[i - 4] : 9; the buffers end
// at memory that must not be touched.
TEST(Memory, PredicateOfTheIndex) {
  for (DType dtype : {DType::kF32, DType::kI8, DType::kF64, DType::kBool}) {
    Kernel kernel;
    kernel.name = "padded";
    Builder b(kernel);
    uint32_t in = b.add_buffer("in", dtype, false);
    uint32_t out = b.add_buffer("out", dtype, true);
    Val n = b.dim(Dim("n"));
    Type type = kir::type_of(dtype);
    Val fill = kir::is_float(type) ? b.constant_float(type, 9) : b.constant_int(type, 1);
    b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
      Val at = b.sub(i, b.i64(4));
      Val inside = b.cmp(Pred::kULt, at, n);
      b.store(out, i, b.load_if(in, at, inside, fill));
    });
    std::vector<Call> calls;
    for (int64_t n_value : {0, 1, 5, 16, 61}) {
      Call call;
      call.end = n_value + 9;
      call.dims = {n_value};
      call.buffers = {ramp(dtype, static_cast<size_t>(n_value)),
                      ramp(dtype, static_cast<size_t>(n_value + 9))};
      calls.push_back(call);
    }
    test::expect_like_reference(kernel, calls);
  }
}

// Predicates from data, on contiguous, reversed, gathered and shared places.
TEST(Memory, PredicateOfTheData) {
  for (DType dtype : {DType::kF32, DType::kU16, DType::kI64}) {
    Kernel kernel;
    kernel.name = fmt::format("masked_{}", name(dtype));
    Builder b(kernel);
    uint32_t in = b.add_buffer("in", dtype, false);
    uint32_t wanted = b.add_buffer("wanted", DType::kBool, false);
    uint32_t out = b.add_buffer("out", dtype, true);
    uint32_t back = b.add_buffer("back", dtype, true);
    uint32_t apart = b.add_buffer("apart", dtype, true);
    Val last = b.sub(b.dim(Dim("n")), b.i64(1));
    b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
      Val p = b.load(wanted, i);
      Val value = b.load(in, i);
      Val mirrored = b.load_if(in, b.sub(last, i), p, value);
      b.store_if(out, i, b.load_if(in, b.i64(0), p, value), p);
      b.store_if(back, b.sub(last, i), mirrored, p);
      b.store_if(apart, b.mul(i, b.i64(3)), b.load_if(in, i, p, mirrored), p);
    });
    std::vector<Call> calls;
    for (int64_t n : {0, 1, 2, 15, 16, 31, 64, 71}) {
      auto count = static_cast<size_t>(n);
      Call call;
      call.end = n;
      call.dims = {n};
      call.buffers = {ramp(dtype, count), ramp(DType::kBool, count), ramp(dtype, count),
                      ramp(dtype, count), ramp(dtype, 3 * count)};
      calls.push_back(call);
    }
    test::expect_like_reference(kernel, calls);
  }
}

// Inactive lanes hold zeros, which this predicate lets through: they must not reach memory.
TEST(Memory, PredicateThatZeroFulfils) {
  Kernel kernel;
  kernel.name = "small_only";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val x = b.load(in, i);
    Val small = b.cmp(Pred::kFLt, x, b.constant_float(Type::kF32, 1));
    b.store_if(out, i, b.load_if(in, i, small, x), small);
  });
  std::vector<Call> calls;
  for (size_t n : {1u, 5u, 15u, 17u, 60u}) {
    Call call;
    call.end = static_cast<int64_t>(n);
    call.buffers = {ramp(DType::kF32, n), ramp(DType::kF32, n)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Memory, PredicateSharedByAllLanes) {
  Kernel kernel;
  kernel.name = "uniform_predicate";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  Val flag = b.cmp(Pred::kSGt, b.dim(Dim("flag")), b.i64(0));
  Val other = b.constant_float(Type::kF32, -1);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    Val value = b.load_if(in, i, flag, other);
    Val first = b.load_if(in, b.i64(0), flag, other);
    b.store(out, i, b.add(value, first));
    b.store_if(out, i, first, b.logical_not(flag));
  });
  std::vector<Call> calls;
  for (int64_t flag_value : {0, 1}) {
    for (int64_t n : {1, 16, 37}) {
      Call call;
      call.end = n;
      call.dims = {flag_value};
      size_t count = flag_value ? static_cast<size_t>(n) : 0;
      call.buffers = {ramp(DType::kF32, count), ramp(DType::kF32, static_cast<size_t>(n))};
      calls.push_back(call);
    }
  }
  test::expect_like_reference(kernel, calls);
}

TEST(Memory, StreamingStoresAtAnyAlignment) {
  Kernel kernel;
  kernel.name = "streaming";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    b.store(out, i, b.add(b.load(in, i), b.constant_float(Type::kF32, 1)), true);
  });
  std::vector<Call> calls;
  for (size_t n : {0u, 1u, 5u, 16u, 64u, 80u, 128u, 131u, 200u, 1024u}) {
    Call call;
    call.end = static_cast<int64_t>(n);
    call.buffers = {ramp(DType::kF32, n), ramp(DType::kF32, n)};
    calls.push_back(call);
  }
  test::expect_like_reference(kernel, calls);
  std::string text;
  const Kernel* one = &kernel;
  compile({&one, 1}, {.isa = Isa::kAvx512, .dump_asm = &text});
  EXPECT_NE(text.find("vmovntps"), std::string::npos);
  EXPECT_NE(text.find("sfence"), std::string::npos);
}

TEST(Memory, ChecksReportActiveLanesAlone) {
  Kernel kernel;
  kernel.name = "checked";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kI32, false);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true}, [&](Val i) {
    b.check(b.cmp(Pred::kNe, b.load(in, i), b.constant_int(Type::kI32, 0)), 42);
  });
  std::vector<Call> calls;
  for (int64_t n : {0, 1, 15, 16, 17, 70}) {
    for (int64_t bad = -1; bad < n; bad += 3) {
      std::vector<int32_t> values(static_cast<size_t>(n), 5);
      if (bad >= 0) values[static_cast<size_t>(bad)] = 0;
      Call call;
      call.end = n;
      call.buffers = {test::bytes_of(values)};
      calls.push_back(call);
    }
  }
  test::expect_like_reference(kernel, calls);
}

}  // namespace
}  // namespace tenon::codegen
