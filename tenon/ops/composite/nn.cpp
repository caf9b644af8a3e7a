#include "tenon/ops/composite/nn.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/ops/attention.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/composite/arrays.h"
#include "tenon/ops/composite/statistics.h"

namespace tenon::ops {
namespace {

// The axis as a list, checked under the composite's own name.
std::vector<int64_t> one_axis(std::string_view op, const Value& x, int64_t axis,
                              const LocationPtr& location) {
  with_location(location, [&] { axis = normalize_axis(op, axis, x.shape().size()); });
  return {axis};
}

DType float_result(const Value& x) { return float_of(x.dtype()); }

}  // namespace

Value softmax(const Value& x, int64_t axis, LocationPtr location) {
  const auto axes = one_axis("softmax", x, axis, location);
  const Value y = to_compute(x, location);
  const Value top = max_or_lowest(y, axes, true, location);
  const Value e = exp(sub(y, top, location), location);
  const Value scale = reciprocal(sum(e, axes, true, location), location);
  return cast(mul(e, scale, location), float_result(x), location);
}

Value log_softmax(const Value& x, int64_t axis, LocationPtr location) {
  const auto axes = one_axis("log_softmax", x, axis, location);
  const Value y = to_compute(x, location);
  const Value shifted = sub(y, max_or_lowest(y, axes, true, location), location);
  const Value total = sum(exp(shifted, location), axes, true, location);
  return cast(sub(shifted, log(total, location), location), float_result(x), location);
}

Value layer_norm(const Value& x, const std::optional<Value>& weight,
                 const std::optional<Value>& bias, double eps, int64_t axis, LocationPtr location) {
  const auto axes = one_axis("layer_norm", x, axis, location);
  const Value d = centered(x, axes, location);
  const Value spread = mean(square(d, location), axes, true, location);
  const Value scale = rsqrt(add(spread, scalar(d.dtype(), eps, location), location), location);
  Value y = mul(d, scale, location);
  if (weight) y = mul(y, cast(*weight, y.dtype(), location), location);
  if (bias) y = add(y, cast(*bias, y.dtype(), location), location);
  return cast(y, float_result(x), location);
}

Value rms_norm(const Value& x, const std::optional<Value>& weight, double eps, int64_t axis,
               LocationPtr location) {
  const auto axes = one_axis("rms_norm", x, axis, location);
  Value y = to_compute(x, location);
  const Value power = mean(square(y, location), axes, true, location);
  y = mul(y, rsqrt(add(power, scalar(y.dtype(), eps, location), location), location), location);
  if (weight) y = mul(y, cast(*weight, y.dtype(), location), location);
  return cast(y, float_result(x), location);
}

Value gelu_tanh(const Value& x, LocationPtr location) {
  const Value y = to_compute(x, location);
  const auto number = [&](double v) { return scalar(y.dtype(), v, location); };
  const Value cube = mul(mul(square(y, location), y, location), number(0.044715), location);
  const double root = std::sqrt(2 / std::numbers::pi);
  const Value inner = mul(add(y, cube, location), number(root), location);
  const Value gate = add(tanh(inner, location), number(1), location);
  return cast(mul(mul(y, number(0.5), location), gate, location), float_result(x), location);
}

Value softplus(const Value& x, LocationPtr location) {
  const Value y = to_compute(x, location);
  const Value tail = log1p(exp(neg(abs(y, location), location), location), location);
  const Value top = maximum(y, scalar(y.dtype(), 0, location), location);
  return cast(add(top, tail, location), float_result(x), location);
}

// --- attention ---

namespace {

const Dim& from_last(const Value& x, size_t k) { return x.shape()[x.shape().size() - 1 - k]; }

Value as_float(const Value& x, const LocationPtr& location) {
  return is_integer(x.dtype()) || x.dtype() == DType::kBool ? cast(x, float_of(x.dtype()), location)
                                                            : x;
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, const AttentionOptions& options,
                LocationPtr location) {
  std::vector<Value> operands = {as_float(q, location), as_float(k, location),
                                 as_float(v, location)};
  const int64_t window = options.window.value_or(0);
  if (options.window && window < 1) {
    with_location(location, [&] {
      throw ValueError(fmt::format("attention: a window of {} keys", window),
                       {.label = "attention_c7"});
    });
  }
  ir::Attrs attrs{{"causal", options.causal},
                  {"window", window},
                  {"mask", options.mask.has_value()},
                  {"length", options.length.has_value()}};
  const Dim depth = q.shape().empty() ? Dim(1) : from_last(q, 0);
  if (options.scale) {
    attrs.set("scale", *options.scale);
  } else if (depth.is_static()) {
    attrs.set("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(depth.value(), 1))));
  } else {
    Value& query = operands[0];
    const Value scale = rsqrt(size({depth}, to_compute(query).dtype(), location), location);
    query = cast(mul(to_compute(query, location), scale, location), query.dtype(), location);
  }
  if (options.mask) operands.push_back(*options.mask);
  if (options.length) operands.push_back(cast(*options.length, DType::kI64, location));
  return ir::make(op::attention, std::move(operands), std::move(attrs), std::move(location));
}

// --- rotary positions ---

namespace {

Value default_frequencies(int64_t dims, double base, const LocationPtr& location) {
  Literal table(DType::kF32, {dims / 2});
  for (int64_t i = 0; i < dims / 2; ++i) {
    table.set_double(i, std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims)));
  }
  return ir::make_constant(std::move(table), location);
}

int64_t rotated_dims(const Value& x, const RopeOptions& options) {
  const Dim last = x.shape().empty() ? Dim(0) : from_last(x, 0);
  const bool fixed = last.is_static() && last.value() > 0;
  const int64_t dims = options.dims ? *options.dims : fixed ? last.value() : 0;
  if (fixed && dims > 0 && dims % 2 == 0 && dims <= last.value()) return dims;
  throw ValueError(fmt::format("rope: {} of the last dimension of {} must be a static even number "
                               "within it",
                               dims, ir::brief(x.type())),
                   {.label = "rope_c1"});
}

Value every_second(const Value& x, int64_t first, const LocationPtr& location) {
  return slice_axis(x, -1, {.start = Dim(first), .stop = std::nullopt, .step = 2}, location);
}

}  // namespace

Value rope(const Value& x, const Value& positions, const RopeOptions& options,
           LocationPtr location) {
  int64_t dims = 0;
  with_location(location, [&] { dims = rotated_dims(x, options); });
  const Value frequencies = options.frequencies ? *options.frequencies
                                                : default_frequencies(dims, options.base, location);
  const Value at = expand_dims(cast(positions, DType::kF32, location), {-1}, location);
  const Value angle = mul(at, frequencies, location);
  const Value c = cos(angle, location);
  const Value s = sin(angle, location);
  const Value all = to_compute(x, location);
  const Value y = slice_axis(all, -1, {.start = std::nullopt, .stop = Dim(dims)}, location);
  const Dim half = dims / 2;
  const Value a = options.interleaved
                      ? every_second(y, 0, location)
                      : slice_axis(y, -1, {.start = std::nullopt, .stop = half}, location);
  const Value b = options.interleaved
                      ? every_second(y, 1, location)
                      : slice_axis(y, -1, {.start = half, .stop = std::nullopt}, location);
  const Value left = sub(mul(a, c, location), mul(b, s, location), location);
  const Value right = add(mul(a, s, location), mul(b, c, location), location);
  Value turned;
  if (options.interleaved) {
    Shape shape = left.shape();
    shape.back() = dims;
    turned = reshape(stack({left, right}, -1, location), shape, location);
  } else {
    turned = concatenate({left, right}, -1, location);
  }
  if (from_last(x, 0) != Dim(dims)) {
    const Value rest = slice_axis(all, -1, {.start = Dim(dims), .stop = std::nullopt}, location);
    turned = concatenate({turned, rest}, -1, location);
  }
  return cast(turned, float_result(x), location);
}

}  // namespace tenon::ops
