#include "tenon/runtime/shared_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tenon/runtime/cpu.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPiece = size_t{256} << 10;  // in one's second cache when the other comes
constexpr size_t kMost = size_t{64} << 20;

void read_array(const Array& array) {
  const auto* from = static_cast<const volatile std::byte*>(array.data());
  const auto pieces = static_cast<int64_t>((array.bytes() + kPiece - 1) / kPiece);
  // Each piece is there twice, in a row: the threads take one each.
  parallel_for(2 * pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t first = static_cast<size_t>(i / 2) * kPiece;
      const size_t last = std::min(first + kPiece, array.bytes());
      for (size_t at = first; at < last; at += kLine) static_cast<void>(from[at]);
    }
  });
}

}  // namespace

void read_together(std::span<const Array> arrays) {
  if (thread_count() < 2) return;
  size_t bytes = 0;
  for (const Array& array : arrays) bytes += array.valid() ? array.bytes() : 0;
  if (bytes > std::min(kMost, static_cast<size_t>(cpu_info().l3_bytes) / 4)) return;
  for (const Array& array : arrays) {
    if (array.valid()) read_array(array);
  }
}

}  // namespace tenon::runtime
