// scatter and put_along_axis: a tensor with elements at given positions replaced, or combined with
// updates; take and take_along_axis backwards. Updates come one after another in the row-major
// order of the indices, so the last one of a position wins, and sums are those of that order.
#include "tenon/ops/scatter.h"

#include <array>
#include <utility>

#include "tenon/ops/checks.h"
#include "tenon/ops/copy.h"
#include "tenon/ops/elementwise.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/position.h"
#include "tenon/ops/registry.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

constexpr std::array<std::string_view, 5> kModes = {"set", "add", "mul", "min", "max"};

ScatterMode mode_of(std::string_view op, const std::string& text) {
  for (size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i] == text) return static_cast<ScatterMode>(i);
  }
  throw ValueError(fmt::format("{}: there is no mode \"{}\"", op, text),
                   {.label = fmt::format("{}_c4", op), .hint = "set, add, mul, min or max"});
}

bool sums_up(ScatterMode mode) { return mode == ScatterMode::kAdd || mode == ScatterMode::kMul; }

Shape replaced(const Shape& shape, size_t axis, std::span<const Dim> by) {
  const auto at = static_cast<int64_t>(axis);
  Shape result(shape.begin(), shape.begin() + at);
  result.insert(result.end(), by.begin(), by.end());
  result.insert(result.end(), shape.begin() + at + 1, shape.end());
  return result;
}

// What both ops ask of mode, dtypes and the shape of the updates.
std::vector<TensorType> infer_written(const ir::InferArgs& args, const Shape& wanted) {
  const TensorType& x = args.in[0];
  const TensorType& updates = args.in[2];
  const ScatterMode mode = mode_of(args.op, args.attrs.s("mode"));
  const bool ordered = mode == ScatterMode::kMin || mode == ScatterMode::kMax;
  check_dtype(args.op, x.dtype, ordered ? ir::DTypeClass::kReal : ir::DTypeClass::kAny);
  bool fits = updates.dtype == x.dtype && updates.shape.size() == wanted.size() &&
              !(sums_up(mode) && is_half(x.dtype));
  for (size_t i = 0; fits && i < wanted.size(); ++i) {
    fits = same_dim(updates.shape[i], wanted[i]);
  }
  if (fits) return {x};
  throw ShapeError(
      fmt::format("{}: updates must be {}{}, and f32 or wider to be added or multiplied", args.op,
                  name(x.dtype), str(wanted)),
      {.label = fmt::format("{}_c3", args.op), .details = operand_types(args.in)});
}

// --- evaluation ---

template <class T>
T combined(ScatterMode mode, T old, T update) {
  switch (mode) {
    case ScatterMode::kSet: break;
    case ScatterMode::kAdd: return elt::plus(old, update);
    case ScatterMode::kMul: return elt::times(old, update);
    case ScatterMode::kMin:
      if constexpr (!std::same_as<T, elt::Complex>) return elt::smaller(old, update);
      break;
    case ScatterMode::kMax:
      if constexpr (!std::same_as<T, elt::Complex>) return elt::larger(old, update);
      break;
  }
  return update;
}

// Runs of elements that meet: `count` of the result from `to` on, of the updates from `from` on.
struct Meeting {
  ScatterMode mode;
  Literal& result;
  const Literal& updates;

  void operator()(int64_t to, int64_t from, int64_t count) const {
    const size_t bytes = size_of(result.dtype());
    if (mode == ScatterMode::kSet) {
      std::memcpy(result.mutable_data() + static_cast<size_t>(to) * bytes,
                  updates.data() + static_cast<size_t>(from) * bytes,
                  static_cast<size_t>(count) * bytes);
      return;
    }
    switch (lane_of(result.dtype())) {
      case Lane::kF32: return combine<float>(to, from, count);
      case Lane::kF64: return combine<double>(to, from, count);
      case Lane::kI64: return combine<int64_t>(to, from, count);
      case Lane::kU64: return combine<uint64_t>(to, from, count);
      case Lane::kBool: return combine<bool>(to, from, count);
      case Lane::kC64: return combine<elt::Complex>(to, from, count);
    }
  }

 private:
  template <class T>
  void combine(int64_t to, int64_t from, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      T old;
      T update;
      read_run(result, to + i, 1, 1, &old);
      read_run(updates, from + i, 1, 1, &update);
      const T next = combined(mode, old, update);
      write_run(result, to + i, 1, &next);
    }
  }
};

// --- scatter(x, indices, updates) {axis, mode} ---
//
// scatter_c1: indices are integers. scatter_c2: an axis without elements takes no indices.
// scatter_c3: updates have x's dtype and the shape of take(x, indices); those that are added or
// multiplied are not of 16 bits. scatter_c4: the mode is one of the five.

std::vector<TensorType> scatter_infer(const ir::InferArgs& args) {
  const Shape& x = args.in[0].shape;
  const Shape& indices = args.in[1].shape;
  check_indices(args.op, args.in[1]);
  const auto axis = static_cast<size_t>(normalize_axis(args.op, args.attrs.i("axis"), x.size()));
  check_has_elements(args.op, x, axis, product(indices));
  return infer_written(args, replaced(x, axis, indices));
}

std::vector<Literal> scatter_eval(const ir::EvalArgs& args) {
  const Literal& indices = args.in[1];
  const Literal& updates = args.in[2];
  Literal result = clone(args.in[0]);
  if (updates.count() == 0) return {std::move(result)};
  const int64_t axis = normalize_axis("scatter", args.attrs.i("axis"), result.rank());
  const int64_t dim = result.dims()[static_cast<size_t>(axis)];
  const int64_t inner = contiguous_strides(result.dims())[static_cast<size_t>(axis)];
  const int64_t outer = updates.count() / inner / indices.count();
  const Meeting meet{mode_of("scatter", args.attrs.s("mode")), result, updates};
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < indices.count(); ++k) {
      const int64_t i = position_in("scatter", indices, k, dim, axis);
      meet((o * dim + i) * inner, (o * indices.count() + k) * inner, inner);
    }
  }
  return {std::move(result)};
}

// Indices and values from 0 to 3, for an axis of four.
ir::Sample sample_of(std::vector<TensorType> in, int64_t axis, std::string_view mode) {
  return {.in = std::move(in),
          .attrs = {{"axis", axis}, {"mode", std::string(mode)}},
          .lo = 0,
          .hi = 3};
}

bool takes(DType dtype, std::string_view mode) {
  if (mode == "set") return true;
  const bool ordered = mode == "min" || mode == "max";
  return ordered ? !is_complex(dtype) : !is_half(dtype);
}

std::vector<ir::Sample> scatter_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    for (const std::string_view mode : kModes) {
      if (!takes(d, mode)) continue;
      samples.push_back(sample_of({{d, {4, 5}}, {DType::kI64, {2, 3}}, {d, {2, 3, 5}}}, 0, mode));
      samples.push_back(sample_of({{d, {4, "k"}}, {DType::kI32, {"n"}}, {d, {"n", "k"}}}, 0, mode));
    }
    if (is_integer(d)) {
      samples.push_back(
          sample_of({{DType::kF32, {2, 4, 3}}, {d, {6}}, {DType::kF32, {2, 6, 3}}}, 1, "add"));
    }
  }
  for (const std::string_view mode : kModes) {
    const auto f = DType::kF32;
    samples.push_back(sample_of({{f, {4}}, {DType::kI64, {}}, {f, {}}}, 0, mode));
    samples.push_back(sample_of({{f, {"n", 4}}, {DType::kI64, {"m"}}, {f, {"n", "m"}}}, 1, mode));
    samples.push_back(sample_of({{f, {4, 2}}, {DType::kI64, {0}}, {f, {0, 2}}}, 0, mode));
    samples.push_back(
        sample_of({{f, {4, 3, 35}}, {DType::kI64, {"m"}}, {f, {"m", 3, 35}}}, 0, mode));
  }
  return samples;
}

// --- put_along_axis(x, indices, updates) {axis, mode} ---
//
// put_along_axis_c1: indices are integers. put_along_axis_c2: the ranks are equal; outside the axis
// indices have x's size or 1. put_along_axis_c3: updates have x's dtype and shape but for the axis,
// where they have that of the indices. put_along_axis_c4: the mode is one of the five.

std::vector<TensorType> put_along_axis_infer(const ir::InferArgs& args) {
  const Shape& x = args.in[0].shape;
  const Shape& indices = args.in[1].shape;
  check_indices(args.op, args.in[1]);
  const auto axis = static_cast<size_t>(normalize_axis(args.op, args.attrs.i("axis"), x.size()));
  bool fits = x.size() == indices.size();
  for (size_t i = 0; fits && i < x.size(); ++i) {
    fits = i == axis || indices[i] == Dim(1) || same_dim(indices[i], x[i]);
  }
  if (!fits) {
    throw ShapeError(
        "put_along_axis: indices must have the operand's rank and, outside the axis, its size or 1",
        {.label = "put_along_axis_c2", .details = operand_types(args.in)});
  }
  return infer_written(args, replaced(x, axis, {&indices[axis], 1}));
}

std::vector<Literal> put_along_axis_eval(const ir::EvalArgs& args) {
  const Literal& indices = args.in[1];
  const Literal& updates = args.in[2];
  Literal result = clone(args.in[0]);
  const int64_t axis = normalize_axis("put_along_axis", args.attrs.i("axis"), result.rank());
  const int64_t dim = result.dims()[static_cast<size_t>(axis)];
  std::vector<int64_t> strides = contiguous_strides(result.dims());
  const int64_t stride = std::exchange(strides[static_cast<size_t>(axis)], 0);
  const Meeting meet{mode_of("put_along_axis", args.attrs.s("mode")), result, updates};
  for_each_run(updates.dims(), {strides, broadcast_strides(indices.dims(), updates.dims())},
               [&](const Run& run) {
                 for (int64_t k = 0; k < run.count; ++k) {
                   const int64_t at = run.at[1] + k * run.step[1];
                   const int64_t i = position_in("put_along_axis", indices, at, dim, axis);
                   meet(run.at[0] + k * run.step[0] + i * stride, run.first + k, 1);
                 }
               });
  return {std::move(result)};
}

std::vector<ir::Sample> put_along_axis_samples() {
  std::vector<ir::Sample> samples;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    for (const std::string_view mode : kModes) {
      if (!takes(d, mode)) continue;
      samples.push_back(sample_of({{d, {4, 5}}, {DType::kI64, {2, 5}}, {d, {2, 5}}}, 0, mode));
      samples.push_back(
          sample_of({{d, {"n", 4}}, {DType::kI32, {"n", "m"}}, {d, {"n", "m"}}}, 1, mode));
    }
  }
  const auto f = DType::kF32;
  samples.push_back(
      sample_of({{f, {2, 4, "k"}}, {DType::kI8, {1, 3, 1}}, {f, {2, 3, "k"}}}, 1, "set"));
  samples.push_back(
      sample_of({{f, {4, "n", 3}}, {DType::kI8, {2, 1, 3}}, {f, {2, "n", 3}}}, 0, "add"));
  return samples;
}

}  // namespace

bool is_scatter(const ir::Node& node) {
  return node.op == &op::scatter || node.op == &op::put_along_axis;
}

ScatterMode scatter_mode(const ir::Node& node) {
  return mode_of(node.op->name, node.attrs.s("mode"));
}

Val emit_scattered(kir::Builder& b, ScatterMode mode, DType dtype, Val old, Val update) {
  if (mode == ScatterMode::kSet) return update;
  const DType arith = is_half(dtype) ? DType::kF32 : dtype;
  const elt::Sym x{&b, to_arith(b, old), arith};
  const elt::Sym y{&b, to_arith(b, update), arith};
  switch (mode) {
    case ScatterMode::kAdd: return finish_element(elt::plus(x, y), dtype);
    case ScatterMode::kMul: return finish_element(elt::times(x, y), dtype);
    case ScatterMode::kMin: return finish_element(elt::smaller(x, y), dtype);
    default: return finish_element(elt::larger(x, y), dtype);
  }
}

namespace op {

const ir::OpDef scatter{
    .name = "scatter",
    .doc =
        "The operand with updates at the positions that take reads: `mode` set (the last one of a "
        "position wins), add, mul, min or max, one after another in the order of the indices.",
    .traits = ir::kAnchor,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {{"axis", int64_t{0}}, {"mode", std::string("set")}},
    .infer = scatter_infer,
    .eval = scatter_eval,
};
TENON_OP_SAMPLES(scatter, scatter_samples)

const ir::OpDef put_along_axis{
    .name = "put_along_axis",
    .doc = "The same at the positions that take_along_axis reads.",
    .traits = ir::kAnchor,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {{"axis", int64_t{0}}, {"mode", std::string("set")}},
    .infer = put_along_axis_infer,
    .eval = put_along_axis_eval,
};
TENON_OP_SAMPLES(put_along_axis, put_along_axis_samples)

}  // namespace op

std::vector<const ir::OpDef*> scatter_ops() { return {&op::scatter, &op::put_along_axis}; }

namespace {

// The op in its normal form; sums and products of 16 bits are kept in f32 and rounded at the end.
Value write(const ir::OpDef& def, const Value& x, const Value& indices, const Value& updates,
            int64_t axis, const std::string& mode, const LocationPtr& location) {
  const ir::Attrs attrs = {{"axis", axis}, {"mode", mode}};
  if (!is_half(x.dtype()) || (mode != "add" && mode != "mul")) {
    return ir::make(def, {x, indices, updates}, attrs, location);
  }
  const Value wide =
      ir::make(def, {cast(x, DType::kF32, location), indices, cast(updates, DType::kF32, location)},
               attrs, location);
  return cast(wide, x.dtype(), location);
}

}  // namespace

Value scatter(const Value& x, const Value& indices, const Value& updates, int64_t axis,
              const std::string& mode, LocationPtr location) {
  with_location(location, [&] { axis = normalize_axis("scatter", axis, x.shape().size()); });
  const Shape shape = replaced(x.shape(), static_cast<size_t>(axis), indices.shape());
  const Value fresh = broadcast_to(cast(updates, x.dtype(), location), shape, location);
  return write(op::scatter, x, indices, fresh, axis, mode, location);
}

Value put_along_axis(const Value& x, const Value& indices, const Value& updates, int64_t axis,
                     const std::string& mode, LocationPtr location) {
  Shape shape = x.shape();
  with_location(location, [&] { axis = normalize_axis("put_along_axis", axis, shape.size()); });
  // Indices of another rank are refused by the op itself.
  const auto at = static_cast<size_t>(axis);
  if (indices.shape().size() == shape.size()) shape[at] = indices.shape()[at];
  const Value fresh = broadcast_to(cast(updates, x.dtype(), location), shape, location);
  return write(op::put_along_axis, x, indices, fresh, axis, mode, location);
}

}  // namespace tenon::ops
