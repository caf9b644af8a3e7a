// What kernels that work in blocks share.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "tenon/kir/builder.h"

namespace tenon::passes {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - Dim(1), b); }

// How much of `part` elements from `first` on a side of `length` elements has.
inline kir::Val part_length(kir::Builder& b, kir::Val first, const Dim& length, int64_t part) {
  if (length.known_divisor() % part == 0) return b.i64(part);
  return b.binary(kir::Op::kSMin, b.i64(part), b.sub(b.dim(length), first));
}

// Tasks of a product that each thread should find. Those of few rows copy little, and many short
// ones end together.
inline int64_t tasks_per_thread(std::optional<int64_t> rows) { return rows && *rows <= 4 ? 16 : 4; }

// Works off `rest` rows from `row`, fewer than `most`, in powers of two, the largest first: calls
// visit(first row, rows) in a branch for each binary digit.
template <class Visit>
void for_each_power(kir::Builder& b, kir::Val row, kir::Val rest, int64_t most,
                    const Visit& visit) {
  for (auto rows = std::bit_floor(static_cast<uint64_t>(most) - 1); rows >= 1; rows /= 2) {
    const auto tile = static_cast<int64_t>(rows);
    const kir::Val digit = b.binary(kir::Op::kAnd, rest, b.i64(tile));
    b.if_then(b.cmp(kir::Pred::kNe, digit, b.i64(0)), [&] { visit(row, tile); });
    row = b.add(row, digit);
  }
}

}  // namespace tenon::passes
