// The order that sort, argsort and top_k put elements in: numbers by value, -0 and 0 equal, NaN
// after every number, false before true; descending is the reverse, NaN first. All NaN are one: the
// quiet one without sign.
//
// Elements are held by their bits, as unsigned integers of their width, and compared by keys made
// of them: a key is an unsigned integer that is smaller for an element that comes before.
#pragma once

#include <cstdint>

#include "tenon/base/literal.h"
#include "tenon/ir/attrs.h"
#include "tenon/kir/builder.h"

namespace tenon::ops {

// Bits of an element of `dtype` in memory (8 for bool).
int element_bits(DType dtype);
// The unsigned dtype of element_bits(dtype).
DType bits_dtype(DType dtype);
// The unsigned dtype of keys: u32, or u64 for elements of 64 bits.
DType key_dtype(DType dtype);

struct Order {
  DType dtype;
  bool descending = false;
  int64_t from_bit = 0;  // of keys: what stands below does not count
};
// The order of a sort or merge_sorted of `dtype`.
Order order_of(DType dtype, const ir::Attrs& attrs);

// --- numbers ---
// Element `i` of `x` by its bits; NaN as the quiet one.
uint64_t element_bits_of(const Literal& x, int64_t i);
uint64_t order_key(uint64_t bits, const Order& order);
// Bits of an element that no other one comes after.
uint64_t last_bits(const Order& order);

// --- kernel values: the same ---
kir::Val bits_of_element(kir::Builder& b, kir::Val element, DType dtype);
kir::Val element_of_bits(kir::Builder& b, kir::Val bits, DType dtype);
// Of type key_dtype(dtype), from bit from_bit on.
kir::Val order_key(kir::Builder& b, kir::Val bits, const Order& order);
// A key that no other element shares, and the bits that it was made of: -0 stands next to 0, on the
// side of the numbers below. Every bit counts.
kir::Val distinct_key(kir::Builder& b, kir::Val bits, const Order& order);
kir::Val bits_of_distinct_key(kir::Builder& b, kir::Val key, const Order& order);

}  // namespace tenon::ops
