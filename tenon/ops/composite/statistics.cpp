#include "tenon/ops/composite/statistics.h"

#include <limits>

#include "tenon/ops/checks.h"

namespace tenon::ops {
namespace {

Shape reduced_dims(std::string_view op, const Value& x, const Axes& axes,
                   const LocationPtr& location) {
  if (!axes) return x.shape();
  Shape dims;
  with_location(location, [&] {
    for (int64_t axis : normalize_axes(op, *axes, x.shape().size())) {
      dims.push_back(x.shape()[static_cast<size_t>(axis)]);
    }
  });
  return dims;
}

DType result_of(const Value& x) { return float_of(x.dtype()); }

}  // namespace

Value to_compute(const Value& x, LocationPtr location) {
  const DType dtype = is_half(x.dtype()) ? DType::kF32 : float_of(x.dtype());
  return cast(x, dtype, std::move(location));
}

Value mean(const Value& x, const Axes& axes, bool keepdims, LocationPtr location) {
  const Value y = to_compute(x, location);
  const Value count = size(reduced_dims("mean", x, axes, location), y.dtype(), location);
  return cast(div(sum(y, axes, keepdims, location), count, location), result_of(x), location);
}

Value centered(const Value& x, const Axes& axes, LocationPtr location) {
  const Value y = to_compute(x, location);
  const Value near = sub(y, mean(y, axes, true, location), location);
  return sub(near, mean(near, axes, true, location), location);
}

namespace {

// Whether the last axis is reduced together with others, over so many rows that statistics of each
// row first read the memory once.
bool by_rows(const Value& x, const Axes& axes) {
  const size_t rank = x.shape().size();
  if (rank < 2 || (axes && axes->size() < 2)) return false;
  const std::vector<int64_t> all =
      axes ? normalize_axes("var", *axes, rank) : std::vector<int64_t>{};
  if (axes && all.back() + 1 != static_cast<int64_t>(rank)) return false;
  return product(Shape(x.shape().begin(), x.shape().end() - 1)).lower_bound() >= 64;
}

// The sum of squared distances from the mean, from those of rows along the last axis and the rows'
// means (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979). The means of the rows keep what their first rounding lost.
Value squares_by_rows(const Value& x, const Axes& axes, bool keepdims,
                      const LocationPtr& location) {
  const Value y = to_compute(x, location);
  const auto last = static_cast<int64_t>(x.shape().size()) - 1;
  std::vector<int64_t> outer;
  for (int64_t axis = 0; axis < last; ++axis) outer.push_back(axis);
  if (axes) outer = normalize_axes("var", *axes, x.shape().size());
  if (axes) outer.pop_back();
  const Value near_mean = mean(y, {{last}}, true, location);
  const Value near = sub(y, near_mean, location);
  const Value lost = mean(near, {{last}}, true, location);
  const auto wide = [&](const Value& v) { return cast(v, DType::kF64, location); };
  const Value within =
      wide(sum(square(sub(near, lost, location), location), {{last}}, true, location));
  const Value means = add(wide(near_mean), wide(lost), location);
  const Value apart = square(sub(means, mean(means, outer, true, location), location), location);
  const Value length = size({x.shape().back()}, DType::kF64, location);
  Value total = sum(add(within, mul(apart, length, location), location), outer, true, location);
  if (!keepdims) {
    outer.push_back(last);
    total = squeeze(total, outer, location);
  }
  return cast(total, y.dtype(), location);
}

}  // namespace

Value var(const Value& x, const Axes& axes, bool keepdims, int64_t ddof, LocationPtr location) {
  const Dim count = product(reduced_dims("var", x, axes, location)) - ddof;
  const Value total = by_rows(x, axes) ? squares_by_rows(x, axes, keepdims, location)
                                       : sum(square(centered(x, axes, location), location), axes,
                                             keepdims, location);
  return cast(div(total, size({count}, total.dtype(), location), location), result_of(x), location);
}

Value stddev(const Value& x, const Axes& axes, bool keepdims, int64_t ddof, LocationPtr location) {
  const Value y = to_compute(x, location);
  return cast(sqrt(var(y, axes, keepdims, ddof, location), location), result_of(x), location);
}

Value logsumexp(const Value& x, const Axes& axes, bool keepdims, LocationPtr location) {
  const Value y = to_compute(x, location);
  const Value top = max_or_lowest(y, axes, true, location);
  const Value zero = scalar(y.dtype(), 0, location);
  const Value shift = where(isfinite(top, location), top, zero, location);
  const Value total = sum(exp(sub(y, shift, location), location), axes, true, location);
  Value result = add(log(total, location), shift, location);
  if (!keepdims) {
    std::vector<int64_t> gone;
    if (axes) {
      gone = normalize_axes("logsumexp", *axes, x.shape().size());
    } else {
      for (size_t i = 0; i < x.shape().size(); ++i) gone.push_back(static_cast<int64_t>(i));
    }
    result = squeeze(result, gone, location);
  }
  return cast(result, result_of(x), location);
}

}  // namespace tenon::ops
