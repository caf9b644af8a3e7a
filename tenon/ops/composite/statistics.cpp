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

Value var(const Value& x, const Axes& axes, bool keepdims, int64_t ddof, LocationPtr location) {
  const Value d = centered(x, axes, location);
  const Dim count = product(reduced_dims("var", x, axes, location)) - ddof;
  const Value total = sum(square(d, location), axes, keepdims, location);
  return cast(div(total, size({count}, d.dtype(), location), location), result_of(x), location);
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
