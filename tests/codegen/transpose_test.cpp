// Matrices turned on every level: every element size, whole and partial squares, any stride.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kernel_harness.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;

// One grid index; both matrices start a little into their buffers.
Kernel transpose_kernel(DType dtype, bool streaming, DType stored) {
  Kernel kernel;
  kernel.name =
      fmt::format("transpose_{}_{}{}", name(stored), name(dtype), streaming ? "_streaming" : "");
  Builder b(kernel);
  const uint32_t source = b.add_buffer("source", stored, false);
  const uint32_t target = b.add_buffer("target", dtype, true);
  std::vector<kir::Val> dims;
  for (const char* dim : {"first", "down", "along", "rows", "columns"}) {
    dims.push_back(b.dim(Dim(dim)));
  }
  b.loop(b.begin(), b.end(), {.parallel = true}, [&](kir::Val) {
    b.transpose({target, dims[0], dims[1]}, {source, b.i64(3), dims[2]}, dims[3], dims[4],
                streaming);
  });
  return kernel;
}

// The buffers end with the last element that may be touched. `aligned`: every line of the target
// that starts a square starts a cache line, as far as the buffer's own end does.
test::Call random_call(DType dtype, int64_t rows, int64_t columns, bool aligned,
                       std::mt19937_64& random) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t along = columns + static_cast<int64_t>(random() % 3);
  const int64_t down = aligned ? (rows + 63) / 64 * 64 : rows + static_cast<int64_t>(random() % 3);
  const int64_t first = aligned ? 64 : 5;
  test::Call call;
  call.end = 1;
  call.dims = {first, down, along, rows, columns};
  const int64_t read = 3 + std::max<int64_t>(0, rows - 1) * along + columns;
  const int64_t written =
      first + std::max<int64_t>(0, columns - 1) * down + (aligned ? down : rows);
  call.buffers.resize(2);
  for (int64_t k = 0; k < read * size; ++k) {
    const auto byte = static_cast<std::byte>(random());
    call.buffers[0].push_back(dtype == DType::kBool ? byte & std::byte{1} : byte);
  }
  call.buffers[1].assign(static_cast<size_t>(written * size), std::byte{1});
  return call;
}

// `stored`: the dtype of the source's buffer.
void expect_transposes(DType dtype, DType stored, bool streaming, std::mt19937_64& random) {
  const Kernel kernel = transpose_kernel(dtype, streaming, stored);
  kir::verify(kernel);
  std::vector<test::Call> calls;
  for (int64_t rows : {0, 1, 7, 16, 17, 35}) {
    for (int64_t columns : {0, 1, 8, 15, 16, 33, 64}) {
      calls.push_back(random_call(dtype, rows, columns, false, random));
    }
  }
  calls.push_back(random_call(dtype, 32, 48, true, random));
  calls.push_back(random_call(dtype, 40, 20, true, random));
  test::expect_like_reference(kernel, calls);
}

TEST(Transpose, EverySizeOfElementAndMatrix) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937_64 random(kSeed);
  for (DType dtype : {DType::kBool, DType::kI8, DType::kBF16, DType::kF32, DType::kI64}) {
    for (bool streaming : {false, true}) expect_transposes(dtype, dtype, streaming, random);
  }
  expect_transposes(DType::kI32, DType::kBF16, false, random);
}

}  // namespace
}  // namespace tenon::codegen
