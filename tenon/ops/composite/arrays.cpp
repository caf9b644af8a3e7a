#include "tenon/ops/composite/arrays.h"

#include <limits>

#include "tenon/ops/checks.h"

namespace tenon::ops {

Value full(Shape shape, const Value& value, LocationPtr location) {
  return broadcast_to(value, std::move(shape), std::move(location));
}

Value zeros(Shape shape, DType dtype, LocationPtr location) {
  return full(std::move(shape), ir::make_constant(Literal(dtype, {}), location), location);
}

Value ones(Shape shape, DType dtype, LocationPtr location) {
  return full(std::move(shape), cast(scalar(DType::kF32, 1, location), dtype, location), location);
}

Value arange(const Dim& stop, DType dtype, LocationPtr location) {
  return iota({dim_max(stop, 0)}, 0, dtype, std::move(location));
}

Value arange(int64_t start, int64_t stop, int64_t step, DType dtype, LocationPtr location) {
  if (step == 0) {
    throw ValueError("arange: step must not be 0",
                     {.label = "arange_c1", .location = ir::str(location)});
  }
  // Without sign: the span between two numbers may not fit in 63 bits.
  const auto difference = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  const bool up = step > 0;
  const uint64_t span = up ? difference(start, stop) : difference(stop, start);
  const uint64_t by = up ? static_cast<uint64_t>(step) : difference(step, 0);
  const uint64_t count = (up ? start < stop : start > stop) ? (span - 1) / by + 1 : 0;
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw ValueError(fmt::format("arange: {} elements from {} to {}", count, start, stop),
                     {.label = "arange_c2", .location = ir::str(location)});
  }
  Value x = iota({static_cast<int64_t>(count)}, 0, DType::kI64, location);
  if (step != 1) x = mul(x, scalar_int(DType::kI64, step, location), location);
  if (start != 0) x = add(x, scalar_int(DType::kI64, start, location), location);
  return cast(x, dtype, location);
}

namespace {

// row + k and column at each position of rows × columns.
std::pair<Value, Value> positions(const Dim& rows, const Dim& columns, int64_t k,
                                  const LocationPtr& location) {
  const Value row = iota({rows, 1}, 0, DType::kI64, location);
  const Value column = iota({1, columns}, 1, DType::kI64, location);
  return {k == 0 ? row : add(row, scalar_int(DType::kI64, k, location), location), column};
}

std::pair<Dim, Dim> matrix_dims(std::string_view op, const Value& x, const LocationPtr& location) {
  const Shape& shape = x.shape();
  if (shape.size() < 2) {
    throw ShapeError(
        fmt::format("{}: needs at least 2 dimensions, got {}", op, ir::brief(x.type())),
        {.label = fmt::format("{}_c1", op), .location = ir::str(location)});
  }
  return {shape[shape.size() - 2], shape[shape.size() - 1]};
}

}  // namespace

Value eye(const Dim& rows, const Dim& columns, int64_t k, DType dtype, LocationPtr location) {
  const auto [row, column] = positions(rows, columns, k, location);
  return cast(equal(row, column, location), dtype, location);
}

Value tri(const Dim& rows, const Dim& columns, int64_t k, DType dtype, LocationPtr location) {
  const auto [row, column] = positions(rows, columns, k, location);
  return cast(less_equal(column, row, location), dtype, location);
}

Value tril(const Value& x, int64_t k, LocationPtr location) {
  const auto [rows, columns] = matrix_dims("tril", x, location);
  return where(tri(rows, columns, k, DType::kBool, location), x, zeros({}, x.dtype(), location),
               location);
}

Value triu(const Value& x, int64_t k, LocationPtr location) {
  const auto [rows, columns] = matrix_dims("triu", x, location);
  return where(tri(rows, columns, k - 1, DType::kBool, location), zeros({}, x.dtype(), location), x,
               location);
}

Value one_hot(const Value& indices, const Dim& classes, DType dtype, int64_t axis,
              LocationPtr location) {
  if (!is_integer(indices.dtype())) {
    throw TypeError(fmt::format("one_hot: indices must be integers, got {}", name(indices.dtype())),
                    {.label = "one_hot_c1", .location = ir::str(location)});
  }
  const size_t rank = indices.shape().size() + 1;
  with_location(location, [&] { axis = normalize_axis("one_hot", axis, rank); });
  Shape shape(rank, Dim(1));
  shape[static_cast<size_t>(axis)] = classes;
  const Value class_of = iota(shape, axis, DType::kI64, location);
  const Value wanted = expand_dims(cast(indices, DType::kI64, location), {axis}, location);
  return cast(equal(wanted, class_of, location), dtype, location);
}

Value clip(const Value& x, const std::optional<Value>& lo, const std::optional<Value>& hi,
           LocationPtr location) {
  const Value raised = lo ? maximum(x, *lo, location) : x;
  return hi ? minimum(raised, *hi, location) : raised;
}

}  // namespace tenon::ops
