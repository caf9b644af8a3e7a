#include "tenon/ops/composite/nn.h"

#include <cmath>
#include <limits>
#include <numbers>

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

// How many query heads share a key head.
int64_t check_heads(const Value& q, const Value& k, const Value& v) {
  const std::vector<ir::TensorType> types{q.type(), k.type(), v.type()};
  const size_t rank = q.shape().size();
  if (rank < 3 || k.shape().size() != rank || v.shape().size() != rank) {
    throw ShapeError("attention: q, k and v need one rank of at least 3",
                     {.label = "attention_c1", .details = operand_types(types)});
  }
  const Dim& heads = from_last(q, 2);
  const Dim& groups = from_last(k, 2);
  if (same_dim(heads, groups)) return 1;
  if (heads.is_static() && groups.is_static() && groups.value() > 0 &&
      heads.value() % groups.value() == 0) {
    return heads.value() / groups.value();
  }
  throw ShapeError(fmt::format("attention: {} key heads do not divide {} query heads", groups.str(),
                               heads.str()),
                   {.label = "attention_c2", .details = operand_types(types)});
}

// [… H, a, b] → [… G, H/G, a, b]; a head dimension of 1 gets another one.
Value split_heads(const Value& x, int64_t per_group, const LocationPtr& location) {
  const Dim heads = from_last(x, 2);
  if (heads == Dim(1)) return expand_dims(x, {-3}, location);
  Shape shape = x.shape();
  const auto at = shape.end() - 3;
  *at = floor_div(heads, per_group);
  shape.insert(at + 1, Dim(per_group));
  return reshape(x, shape, location);
}

Value masked(const Value& scores, Value mask, int64_t per_group, const LocationPtr& location) {
  if (per_group > 1 && mask.shape().size() >= 3) mask = split_heads(mask, per_group, location);
  if (mask.dtype() != DType::kBool) {
    return add(scores, cast(mask, scores.dtype(), location), location);
  }
  const double none = -std::numeric_limits<double>::infinity();
  return where(mask, scores, scalar(scores.dtype(), none, location), location);
}

Value causal_mask(const Dim& queries, const Dim& keys, const LocationPtr& location) {
  const Value row = iota({queries, 1}, 0, DType::kI64, location);
  const Value column = iota({1, keys}, 1, DType::kI64, location);
  const Value shift = size({keys - queries}, DType::kI64, location);
  return less_equal(column, add(row, shift, location), location);
}

}  // namespace

Value attention(const Value& q, const Value& k, const Value& v, const AttentionOptions& options,
                LocationPtr location) {
  int64_t per_group = 1;
  with_location(location, [&] { per_group = check_heads(q, k, v); });
  Value query = to_compute(q, location);
  const Value scale = options.scale
                          ? scalar(query.dtype(), *options.scale, location)
                          : rsqrt(size({from_last(q, 0)}, query.dtype(), location), location);
  query = mul(query, scale, location);
  Value key = k;
  Value value = v;
  if (per_group > 1) {
    query = split_heads(query, per_group, location);
    key = expand_dims(key, {-3}, location);
    value = expand_dims(value, {-3}, location);
  }
  Value scores = matmul(query, swap_axes(key, -1, -2, location), location);
  if (options.mask) scores = masked(scores, *options.mask, per_group, location);
  if (options.causal) {
    const Value mask = causal_mask(from_last(q, 1), from_last(k, 1), location);
    scores = masked(scores, mask, 1, location);
  }
  Value result = matmul(softmax(scores, -1, location), value, location);
  if (per_group > 1) {
    Shape shape = result.shape();
    const auto at = shape.end() - 4;
    *at = *at * *(at + 1);
    shape.erase(at + 1);
    result = reshape(result, shape, location);
  }
  return cast(result, float_result(q), location);
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
