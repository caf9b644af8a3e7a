// sort(x) {descending, from_bit}, merge_sorted(x) {size, descending, from_bit} and order_key(x)
// {descending}: along the last axis; the order is that of order.h. argsort and top_k are made of
// them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tenon/base/check_code.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/order.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

std::vector<DType> sortable() {
  std::vector<DType> dtypes;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (ir::contains(ir::DTypeClass::kReal, dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

// Rows of `n` elements of `x`, each put in order; the first `kept` of each.
std::vector<Literal> sort_rows(const Literal& x, const ir::ConcreteType& type, int64_t n,
                               int64_t kept, const Order& by) {
  Literal result(type.dtype, type.dims);
  const size_t size = size_of(type.dtype);
  std::vector<uint64_t> bits(static_cast<size_t>(n));
  std::vector<uint64_t> keys(bits.size());
  std::vector<int64_t> order(bits.size());
  const int64_t rows = n == 0 ? 0 : x.count() / n;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      bits[at] = element_bits_of(x, row * n + i);
      keys[at] = order_key(bits[at], by);
      order[at] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
    });
    for (int64_t i = 0; i < kept; ++i) {
      const uint64_t value = bits[static_cast<size_t>(order[static_cast<size_t>(i)])];
      std::memcpy(result.mutable_data() + static_cast<size_t>(row * kept + i) * size, &value, size);
    }
  }
  return {std::move(result)};
}

// <op>_c1: from_bit is 0, or inside an unsigned element.
int64_t checked_from_bit(const ir::InferArgs& args) {
  const int64_t from = args.attrs.i("from_bit");
  const DType dtype = args.in[0].dtype;
  if (from != 0 && (!is_unsigned(dtype) || from < 0 || from >= element_bits(dtype))) {
    throw ValueError(fmt::format("{}: from bit {} of {}", args.op, from, name(dtype)),
                     {.label = fmt::format("{}_c1", args.op)});
  }
  return from;
}

// --- sort {descending, from_bit} ---
//
// sort_axis: there is a last axis. sort_c2:
// from_bit above 0: rows of at most 2^from_bit elements.

std::vector<TensorType> sort_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  check_dtype(args.op, x.dtype, ir::DTypeClass::kReal);
  normalize_axis(args.op, -1, x.rank());
  const int64_t from = checked_from_bit(args);
  if (from != 0 && x.shape.back().lower_bound() > int64_t{1} << from) {
    throw ValueError(
        fmt::format("sort: rows of {} elements, at most 2^{}", x.shape.back().str(), from),
        {.label = "sort_c2"});
  }
  return {x};
}

std::vector<Literal> sort_eval(const ir::EvalArgs& args) {
  const int64_t n = args.out[0].dims.back();
  const int64_t from = args.attrs.i("from_bit");
  if (from != 0 && n > int64_t{1} << from) {
    throw ValueError(fmt::format("sort: rows of {} elements, at most 2^{}", n, from),
                     {.label = "sort_c2"});
  }
  return sort_rows(args.in[0], args.out[0], n, n, order_of(args.in[0].dtype(), args.attrs));
}

std::vector<ir::Sample> sort_samples() {
  std::vector<ir::Sample> samples;
  for (const DType d : sortable()) {
    for (const bool descending : {false, true}) {
      const ir::Attrs attrs = {{"descending", descending}};
      samples.push_back({.in = {{d, {3, 7}}}, .attrs = attrs});
      samples.push_back({.in = {{d, {"n"}}}, .attrs = attrs});
      samples.push_back({.in = {{d, {2, 0}}}, .attrs = attrs});
    }
  }
  samples.push_back({.in = {{DType::kU64, {2, 9}}}, .attrs = {{"from_bit", int64_t{32}}}});
  return samples;
}

// --- merge_sorted {size, descending, from_bit}: rows of pairs, each in order, become one row ---
//
// merge_sorted_c2: the last two axes are 2 and something; size is one dimension, not above both.

std::vector<TensorType> merge_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  check_dtype(args.op, x.dtype, ir::DTypeClass::kReal);
  checked_from_bit(args);
  const Shape& size = args.attrs.shape("size");
  if (x.rank() < 2 || !same_dim(x.shape[x.rank() - 2], Dim(2)) || size.size() != 1) {
    throw ShapeError("merge_sorted: takes pairs of rows and one size",
                     {.label = "merge_sorted_c2"});
  }
  Shape shape(x.shape.begin(), x.shape.end() - 2);
  shape.push_back(size[0]);
  return {{x.dtype, shape}};
}

std::vector<Literal> merge_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const int64_t kept = args.out[0].dims.back();
  if (kept > 2 * x.dims().back()) {
    throw ShapeError(fmt::format("merge_sorted: {} elements of {}", kept, 2 * x.dims().back()),
                     {.label = "merge_sorted_c2"});
  }
  return sort_rows(x, args.out[0], 2 * x.dims().back(), kept, order_of(x.dtype(), args.attrs));
}

// --- order_key {descending} ---

std::vector<TensorType> order_key_infer(const ir::InferArgs& args) {
  check_dtype(args.op, args.in[0].dtype, ir::DTypeClass::kReal);
  return {{key_dtype(args.in[0].dtype), args.in[0].shape}};
}

std::vector<Literal> order_key_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  Literal result(args.out[0].dtype, args.out[0].dims);
  const Order order{x.dtype(), args.attrs.b("descending")};
  for (int64_t i = 0; i < x.count(); ++i) {
    const uint64_t key = order_key(element_bits_of(x, i), order);
    if (result.dtype() == DType::kU64) {
      result.as_mutable<uint64_t>()[i] = key;
    } else {
      result.as_mutable<uint32_t>()[i] = static_cast<uint32_t>(key);
    }
  }
  return {std::move(result)};
}

Val order_key_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Val bits = bits_of_element(b, ctx.element(x, index), x.dtype());
  return order_key(b, bits, {x.dtype(), node.attrs.b("descending")});
}

std::vector<ir::Sample> order_key_samples() {
  std::vector<ir::Sample> samples;
  for (const DType d : sortable()) {
    for (const bool descending : {false, true}) {
      samples.push_back({.in = {{d, {"n", 19}}}, .attrs = {{"descending", descending}}});
    }
    samples.push_back({.in = {{d, {}}}});
  }
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef sort{
    .name = "sort",
    .doc =
        "The elements of each row along the last axis in order: NaN after every number, -0 equal "
        "to 0, equal ones as they stood; `descending` turns the order of unequal ones round; "
        "`from_bit` looks at the bits of unsigned integers from there up.",
    .traits = ir::kAnchor,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"descending", false}, {"from_bit", int64_t{0}}},
    .infer = sort_infer,
    .eval = sort_eval,
};
TENON_OP_SAMPLES(sort, sort_samples)

const ir::OpDef merge_sorted{
    .name = "merge_sorted",
    .doc =
        "The first `size` elements, in the order of sort, of each pair of rows that are in that "
        "order.",
    .traits = ir::kAnchor,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"size", Shape{}, true}, {"descending", false}, {"from_bit", int64_t{0}}},
    .infer = merge_infer,
    .eval = merge_eval,
};

const ir::OpDef order_key{
    .name = "order_key",
    .doc =
        "An unsigned integer (u32, u64 for 64 bits) that is smaller for an element that sort puts "
        "before another one.",
    .traits = ir::kElementwise,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"descending", false}},
    .infer = order_key_infer,
    .eval = order_key_eval,
    .lower = order_key_lower,
};
TENON_OP_SAMPLES(order_key, order_key_samples)

}  // namespace op

std::vector<const ir::OpDef*> sort_ops() { return {&op::sort, &op::merge_sorted, &op::order_key}; }

namespace {

constexpr int64_t kPositionBits = 32;  // what a packed key leaves for the position

int64_t checked_axis(std::string_view op, const Value& x, int64_t axis,
                     const LocationPtr& location) {
  with_location(location, [&] {
    check_dtype(op, x.dtype(), ir::DTypeClass::kReal);
    axis = normalize_axis(op, axis, x.shape().size());
  });
  return axis;
}

Value sorted(const Value& x, bool descending, int64_t from_bit, const LocationPtr& location) {
  return ir::make(op::sort, {x}, {{"descending", descending}, {"from_bit", from_bit}}, location);
}

Value key_of(const Value& x, bool descending, const LocationPtr& location) {
  return ir::make(op::order_key, {x}, {{"descending", descending}}, location);
}

// 32 bits of each element's key, from `shift` up, above its position (u64).
Value packed_at(const Value& keys, int64_t shift, const Value& position,
                const LocationPtr& location) {
  const auto word = [&](int64_t bits) { return scalar_int(DType::kU64, bits, location); };
  Value high = cast(keys, DType::kU64, location);
  if (shift > 0) high = right_shift(high, word(shift), location);
  return bitwise_or(left_shift(high, word(kPositionBits), location), position, location);
}

// The same with positions along the last axis.
Value packed(const Value& keys, int64_t shift, const LocationPtr& location) {
  const auto last = static_cast<int64_t>(keys.shape().size()) - 1;
  return packed_at(keys, shift, iota(keys.shape(), last, DType::kU64, location), location);
}

Value positions_of(const Value& packed, const LocationPtr& location) {
  const Value mask = scalar_int(DType::kU64, (int64_t{1} << kPositionBits) - 1, location);
  return cast(bitwise_and(packed, mask, location), DType::kI64, location);
}

// Along the last axis: the order by 32 bits of the keys. Words that no two elements share sort by
// all their bits where that costs no passes, in short rows.
Value order_by(const Value& keys, int64_t shift, const LocationPtr& location) {
  constexpr int64_t kShort = 256;
  const bool all = keys.shape().back().upper_bound() <= kShort;
  return positions_of(
      sorted(packed(keys, shift, location), false, all ? 0 : kPositionBits, location), location);
}

// Along the last axis. Keys of 64 bits are sorted by their low words, then by their high ones.
Value argsort_last(const Value& x, bool descending, const LocationPtr& location) {
  const Value keys = key_of(x, descending, location);
  const Value low = order_by(keys, 0, location);
  if (keys.dtype() == DType::kU32) return low;
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  const Value high = order_by(take_along_axis(keys, low, last, location), 32, location);
  return take_along_axis(low, high, last, location);
}

// The positions along the last axis of the first k elements in order.
Value first_of_all(const Value& x, int64_t k, bool descending, const LocationPtr& location) {
  return slice_axis(argsort_last(x, descending, location), -1, {.stop = Dim(k)}, location);
}

// Elements of a block for which the blocks' first elements, and those of k blocks, are about as
// many; 0 where sorting all is as good.
int64_t block_for(const Value& x, int64_t k) {
  const Dim& length = x.shape().back();
  if (!length.is_static() || k == 0 || key_dtype(x.dtype()) != DType::kU32) return 0;
  int64_t block = 1;
  while (block * block * k < length.value()) block *= 2;
  return block >= 8 && length.value() >= 4096 ? block : 0;
}

// The same as first_of_all: the k blocks whose first elements in order come first hold them all,
// since each of their own first elements comes before every element of another block.
Value first_of_blocks(const Value& x, int64_t k, int64_t block, bool descending,
                      const LocationPtr& location) {
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  const int64_t length = x.shape().back().value();
  const int64_t blocks = (length + block - 1) / block;
  // Comes after every packed key.
  const Value none = cast(scalar_int(DType::kI64, -1, location), DType::kU64, location);
  Value all = packed(key_of(x, descending, location), 0, location);
  Shape shape(x.shape().size(), Dim(0));
  if (blocks * block != length) {
    Shape after = shape;
    after.back() = Dim(blocks * block - length);
    all = pad(all, shape, after, none, location);
  }
  shape.assign(x.shape().begin(), x.shape().end() - 1);
  shape.insert(shape.end(), {Dim(blocks), Dim(block)});
  const Value firsts = min(reshape(all, shape, location), {{last + 1}}, false, location);
  const Value best =
      slice_axis(sorted(firsts, false, kPositionBits, location), -1, {.stop = Dim(k)}, location);
  // The positions of the elements of those blocks; some past the end of the last one.
  const Value chosen = bitwise_and(positions_of(best, location),
                                   scalar_int(DType::kI64, -block, location), location);
  shape[static_cast<size_t>(last)] = Dim(k);
  Value at = add(expand_dims(chosen, {last + 1}, location),
                 iota({Dim(block)}, 0, DType::kI64, location), location);
  shape.pop_back();
  shape.back() = Dim(k * block);
  at = reshape(at, shape, location);
  const Value inside = less(at, scalar_int(DType::kI64, length, location), location);
  const Value near = minimum(at, scalar_int(DType::kI64, length - 1, location), location);
  const Value keys = key_of(take_along_axis(x, near, last, location), descending, location);
  const Value candidates =
      where(inside, packed_at(keys, 0, cast(at, DType::kU64, location), location), none, location);
  const Value order = sorted(candidates, false, 0, location);
  return positions_of(slice_axis(order, -1, {.stop = Dim(k)}, location), location);
}

}  // namespace

Value sort(const Value& x, int64_t axis, bool descending, LocationPtr location) {
  axis = checked_axis("sort", x, axis, location);
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  if (axis == last) return sorted(x, descending, 0, location);
  return swap_axes(sorted(swap_axes(x, axis, last, location), descending, 0, location), axis, last,
                   location);
}

Value argsort(const Value& x, int64_t axis, bool descending, LocationPtr location) {
  axis = checked_axis("argsort", x, axis, location);
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  if (axis == last) return argsort_last(x, descending, location);
  return swap_axes(argsort_last(swap_axes(x, axis, last, location), descending, location), axis,
                   last, location);
}

TopK top_k(const Value& x, int64_t k, int64_t axis, bool largest, LocationPtr location) {
  axis = checked_axis("top_k", x, axis, location);
  const Dim& size = x.shape()[static_cast<size_t>(axis)];
  if (k < 0 || k > size.upper_bound()) {
    throw ValueError(fmt::format("top_k: {} of {} elements", k, size.str()),
                     {.label = "top_k_c1", .location = ir::str(location)});
  }
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  const Value rows = axis == last ? x : swap_axes(x, axis, last, location);
  const int64_t block = block_for(rows, k);
  Value indices = block > 0 ? first_of_blocks(rows, k, block, largest, location)
                            : first_of_all(rows, k, largest, location);
  if (axis != last) indices = swap_axes(indices, axis, last, location);
  return {take_along_axis(x, indices, axis, location), indices};
}

}  // namespace tenon::ops
