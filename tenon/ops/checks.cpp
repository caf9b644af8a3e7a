#include "tenon/ops/checks.h"

#include <algorithm>

namespace tenon::ops {

using ir::TensorType;

void check_dtype(std::string_view op, DType dtype, ir::DTypeClass cls) {
  if (ir::contains(cls, dtype)) return;
  throw TypeError(fmt::format("{}: takes {}, got {}", op, ir::name(cls), name(dtype)),
                  {.label = fmt::format("{}_dtype", op)});
}

DType check_same_dtype(const ir::InferArgs& args) {
  for (const TensorType& type : args.in) {
    if (type.dtype == args.in[0].dtype) continue;
    throw TypeError(fmt::format("{}: operands must have one dtype, got {} and {}", args.op,
                                name(args.in[0].dtype), name(type.dtype)),
                    {.label = fmt::format("{}_dtypes", args.op)});
  }
  return args.in[0].dtype;
}

int64_t normalize_axis(std::string_view op, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis >= -r && axis < r) return axis < 0 ? axis + r : axis;
  const std::string wanted =
      r == 0 ? "a 0-d operand has no axes" : fmt::format("must be in {}..{}", -r, r - 1);
  throw ValueError(fmt::format("{}: axis {} for rank {}: {}", op, axis, r, wanted),
                   {.label = fmt::format("{}_axis", op)});
}

std::vector<int64_t> normalize_axes(std::string_view op, const std::vector<int64_t>& axes,
                                    size_t rank) {
  std::vector<int64_t> sorted;
  for (int64_t axis : axes) sorted.push_back(normalize_axis(op, axis, rank));
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw ValueError(fmt::format("{}: axis {} is named twice", op, *twice),
                     {.label = fmt::format("{}_axis", op)});
  }
  return sorted;
}

bool same_dim(const Dim& a, const Dim& b) { return a == b || Dim::equal(a, b).value_or(false); }

void with_location(const ir::LocationPtr& location, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    if (location == nullptr || !error.parts().location.empty()) throw;
    ErrorParts parts = error.parts();
    parts.location = ir::str(location);
    throw_error(error.kind(), error.message(), std::move(parts));
  }
}

std::string operand_types(std::span<const TensorType> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text += "   ";
    text += i < 26 ? std::string(1, static_cast<char>('a' + i)) : std::to_string(i);
    text += ": " + ir::brief(types[i]);
  }
  return text;
}

namespace {

bool is_one(const Dim& d) { return d.is_static() && d.value() == 1; }

[[noreturn]] void refuse_broadcast(std::string_view op, const std::vector<Shape>& shapes,
                                   const Dim& a, const Dim& b) {
  std::string text;
  for (const Shape& shape : shapes) text += (text.empty() ? "" : " and ") + str(shape);
  const bool symbolic = !a.is_static() || !b.is_static();
  throw ShapeError(
      fmt::format("{}: shapes {} do not broadcast: dimensions {} and {} differ", op, text, a.str(),
                  b.str()),
      {.label = fmt::format("{}_broadcast", op),
       .hint = symbolic ? "named dimensions must be equal for all values of the names; "
                          "give both the same name, or broadcast one explicitly"
                        : ""});
}

}  // namespace

Shape broadcast_shapes(std::string_view op, const std::vector<Shape>& shapes) {
  size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result(rank, Dim(1));
  for (const Shape& shape : shapes) {
    for (size_t k = 0; k < shape.size(); ++k) {
      Dim& out = result[rank - 1 - k];
      const Dim& in = shape[shape.size() - 1 - k];
      if (is_one(in) || same_dim(in, out)) continue;
      if (!is_one(out)) refuse_broadcast(op, shapes, out, in);
      out = in;
    }
  }
  return result;
}

}  // namespace tenon::ops
