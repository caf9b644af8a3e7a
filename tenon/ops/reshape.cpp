// reshape, squeeze, expand_dims: the same elements in the same order under another shape.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/samples.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// A literal of other dims over the same bytes.
std::vector<Literal> same_bytes(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const auto keep = std::make_shared<Literal>(x);
  return {Literal::borrow(x.dtype(), args.out[0].dims, keep->data(), keep)};
}

Shape with_ones(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape result;
  const size_t rank = shape.size() + axes.size();
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    const bool added = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    result.push_back(added ? Dim(1) : shape[next++]);
  }
  return result;
}

// --- reshape {shape} ---
//
// reshape_c1: the shapes have equally many elements for all values of the names.

std::vector<TensorType> reshape_infer(const ir::InferArgs& args) {
  const TensorType& x = args.in[0];
  const Shape& shape = args.attrs.shape("shape");
  const Dim have = product(x.shape);
  const Dim want = product(shape);
  if (!same_dim(have, want)) {
    const bool symbolic = !have.is_static() || !want.is_static();
    throw ShapeError(fmt::format("reshape: {} elements of {} do not fill {} of {}", have.str(),
                                 str(x.shape), want.str(), str(shape)),
                     {.label = "reshape_c1",
                      .hint = symbolic ? "sizes must be equal for all values of the names" : ""});
  }
  return {{x.dtype, shape}};
}

// Runs of dimensions on both sides with equal products, shortest first: only these are flattened,
// so that dimensions which stay keep their index.
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

std::vector<Group> match_groups(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() && j < to.size()) {
    bool found = false;
    for (size_t total = 2; !found && total <= from.size() - i + to.size() - j; ++total) {
      for (size_t a = 1; !found && a < total; ++a) {
        const size_t b = total - a;
        if (i + a > from.size() || j + b > to.size()) continue;
        const Shape left(from.begin() + static_cast<int64_t>(i),
                         from.begin() + static_cast<int64_t>(i + a));
        const Shape right(to.begin() + static_cast<int64_t>(j),
                          to.begin() + static_cast<int64_t>(j + b));
        if (product(left) != product(right)) continue;
        groups.push_back({i, i + a, j, j + b});
        i += a;
        j += b;
        found = true;
      }
    }
    if (!found) break;
  }
  if (i < from.size() || j < to.size()) {
    // Trailing dimensions of 1 join the last group.
    if (groups.empty()) groups.push_back({0, 0, 0, 0});
    groups.back().from_end = from.size();
    groups.back().to_end = to.size();
  }
  return groups;
}

Val reshape_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Shape& from = x.shape();
  const Shape& to = node.types[0].shape;
  Index at(from.size());
  const auto part = [](const Shape& s, size_t begin, size_t end) {
    return Shape(s.begin() + static_cast<int64_t>(begin), s.begin() + static_cast<int64_t>(end));
  };
  for (const Group& g : match_groups(from, to)) {
    const Shape to_part = part(to, g.to_begin, g.to_end);
    const Val flat = flatten_index(b, to_part, index.subspan(g.to_begin, to_part.size()));
    const Index split = unflatten_index(b, part(from, g.from_begin, g.from_end), flat);
    std::copy(split.begin(), split.end(), at.begin() + static_cast<int64_t>(g.from_begin));
  }
  return ctx.element(x, at);
}

std::vector<ir::Sample> reshape_samples() {
  return for_all_dtypes([](std::vector<ir::Sample>& to, DType d) {
    to.push_back({.in = {{d, {4, 6}}}, .attrs = {{"shape", Shape{2, 3, 4}}}});
    to.push_back({.in = {{d, {}}}, .attrs = {{"shape", Shape{1, 1}}}});
    to.push_back({.in = {{d, {1, 1}}}, .attrs = {{"shape", Shape{}}}});
    to.push_back({.in = {{d, {"n", 6}}}, .attrs = {{"shape", Shape{"n", 2, 3}}}});
    to.push_back({.in = {{d, {"n", 4}}}, .attrs = {{"shape", Shape{Dim("n") * Dim(2), 2}}}});
    to.push_back({.in = {{d, {0, 3}}}, .attrs = {{"shape", Shape{5, 0}}}});
  });
}

// --- squeeze {axes}: the axes have dimension 1 (squeeze_c1) ---

std::vector<TensorType> squeeze_infer(const ir::InferArgs& args) {
  const Shape& shape = args.in[0].shape;
  const auto axes = normalize_axes(args.op, args.attrs.ints("axes"), shape.size());
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      result.push_back(shape[i]);
    } else if (!same_dim(shape[i], 1)) {
      throw ShapeError(
          fmt::format("squeeze: axis {} of {} must be 1, is {}", i, str(shape), shape[i].str()),
          {.label = "squeeze_c1"});
    }
  }
  return {{args.in[0].dtype, result}};
}

Val squeeze_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  const Value& x = node.operands[0];
  const auto axes = normalize_axes("squeeze", node.attrs.ints("axes"), x.shape().size());
  Index at;
  size_t next = 0;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    at.push_back(gone ? ctx.builder().i64(0) : index[next++]);
  }
  return ctx.element(x, at);
}

std::vector<ir::Sample> squeeze_samples() {
  return for_all_dtypes([](std::vector<ir::Sample>& to, DType d) {
    to.push_back({.in = {{d, {1, "n", 1}}}, .attrs = {{"axes", std::vector<int64_t>{0, 2}}}});
  });
}

// --- expand_dims {axes}: axes of the result ---

std::vector<TensorType> expand_dims_infer(const ir::InferArgs& args) {
  const Shape& shape = args.in[0].shape;
  const auto& wanted = args.attrs.ints("axes");
  const auto axes = normalize_axes(args.op, wanted, shape.size() + wanted.size());
  return {{args.in[0].dtype, with_ones(shape, axes)}};
}

Val expand_dims_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                      std::span<const Val> index) {
  const auto axes = normalize_axes("expand_dims", node.attrs.ints("axes"), index.size());
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      at.push_back(index[i]);
    }
  }
  return ctx.element(node.operands[0], at);
}

std::vector<ir::Sample> expand_dims_samples() {
  return for_all_dtypes([](std::vector<ir::Sample>& to, DType d) {
    to.push_back({.in = {{d, {"n", 3}}}, .attrs = {{"axes", std::vector<int64_t>{0, 2}}}});
    to.push_back({.in = {{d, {}}}, .attrs = {{"axes", std::vector<int64_t>{0}}}});
  });
}

}  // namespace

namespace op {

const ir::OpDef reshape{
    .name = "reshape",
    .doc = "The elements in row-major order under another shape of equally many.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"shape", Shape{}, true}},
    .infer = reshape_infer,
    .eval = same_bytes,
    .lower = reshape_lower,
};
TENON_OP_SAMPLES(reshape, reshape_samples)

const ir::OpDef squeeze{
    .name = "squeeze",
    .doc = "Without axes whose dimension is 1.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"axes", std::vector<int64_t>{}, true}},
    .infer = squeeze_infer,
    .eval = same_bytes,
    .lower = squeeze_lower,
};
TENON_OP_SAMPLES(squeeze, squeeze_samples)

const ir::OpDef expand_dims{
    .name = "expand_dims",
    .doc = "With new axes of dimension 1, numbered as in the result.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"axes", std::vector<int64_t>{}, true}},
    .infer = expand_dims_infer,
    .eval = same_bytes,
    .lower = expand_dims_lower,
};
TENON_OP_SAMPLES(expand_dims, expand_dims_samples)

}  // namespace op

std::vector<const ir::OpDef*> reshape_ops() {
  return {&op::reshape, &op::squeeze, &op::expand_dims};
}

namespace {

// Non-negative, sorted axes where they are valid; else as given, for inference to refuse.
std::vector<int64_t> resolve(const std::vector<int64_t>& axes, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  std::vector<int64_t> resolved;
  for (int64_t axis : axes) {
    if (axis < -r || axis >= r) return axes;
    resolved.push_back(axis < 0 ? axis + r : axis);
  }
  std::sort(resolved.begin(), resolved.end());
  return resolved;
}

bool is_minus_one(const Dim& d) { return d.is_static() && d.value() == -1; }

// Replaces the one -1 of `shape` by what is left of `total`.
Shape fill_in(const Dim& total, Shape shape) {
  Shape known;
  for (const Dim& d : shape) {
    if (!is_minus_one(d)) known.push_back(d);
  }
  if (known.size() == shape.size()) return shape;
  const Dim rest = product(known);
  if (known.size() + 1 < shape.size() || same_dim(rest, 0)) {
    throw ShapeError(
        fmt::format("reshape: -1 in {} is not decided by {} elements", str(shape), total.str()),
        {.label = "reshape_c2"});
  }
  for (Dim& d : shape) {
    if (is_minus_one(d)) d = floor_div(total, rest);
  }
  return shape;
}

}  // namespace

Value reshape(const Value& x, Shape shape, LocationPtr location) {
  with_location(location, [&] { shape = fill_in(product(x.shape()), std::move(shape)); });
  if (shape == x.shape()) return x;
  return ir::make(op::reshape, {x}, {{"shape", std::move(shape)}}, std::move(location));
}

Value squeeze(const Value& x, const Axes& axes, LocationPtr location) {
  std::vector<int64_t> wanted;
  if (axes) {
    wanted = resolve(*axes, x.shape().size());
  } else {
    for (size_t i = 0; i < x.shape().size(); ++i) {
      if (x.shape()[i] == Dim(1)) wanted.push_back(static_cast<int64_t>(i));
    }
  }
  if (wanted.empty()) return x;
  return ir::make(op::squeeze, {x}, {{"axes", std::move(wanted)}}, std::move(location));
}

Value expand_dims(const Value& x, std::vector<int64_t> axes, LocationPtr location) {
  if (axes.empty()) return x;
  axes = resolve(axes, x.shape().size() + axes.size());
  return ir::make(op::expand_dims, {x}, {{"axes", std::move(axes)}}, std::move(location));
}

}  // namespace tenon::ops
