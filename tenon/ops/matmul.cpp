// matmul(a, b): the product over the last axis of a and the second-last of b, batched over the
// leading axes, which broadcast.
#include <algorithm>

#include "tenon/ops/checks.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/lanes.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/reduce.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/scalar.h"
#include "tenon/ops/symbolic.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;

namespace {

// matmul_c1: both operands have at least 2 dimensions (the function takes 1-d ones too).
// matmul_c2: the last dimension of a and the second-last of b are equal.
// matmul_c3: leading dimensions broadcast.
// matmul_dtypes: one real dtype, or f32 with f16 or bf16, which gives f32.

DType product_dtype(const TensorType& a, const TensorType& b) {
  check_dtype("matmul", a.dtype, ir::DTypeClass::kReal);
  check_dtype("matmul", b.dtype, ir::DTypeClass::kReal);
  const bool mixed =
      (a.dtype == DType::kF32 && is_half(b.dtype)) || (b.dtype == DType::kF32 && is_half(a.dtype));
  if (a.dtype == b.dtype || mixed) return mixed ? DType::kF32 : a.dtype;
  throw TypeError(fmt::format("matmul: operands must have one dtype, or f32 with f16 or bf16, got "
                              "{} and {}",
                              name(a.dtype), name(b.dtype)),
                  {.label = "matmul_dtypes"});
}

const Dim& from_last(const Shape& shape, size_t k) { return shape[shape.size() - 1 - k]; }

// The checks on the operands as users gave them: 1-d ones included.
void check_inner(const TensorType& a, const TensorType& b) {
  for (const TensorType* type : {&a, &b}) {
    if (!type->shape.empty()) continue;
    throw ShapeError("matmul: operands need at least 1 dimension",
                     {.label = "matmul_c1",
                      .hint = "use mul for a product with a number",
                      .details = operand_types(std::vector<TensorType>{a, b})});
  }
  const Dim& last = from_last(a.shape, 0);
  const Dim& inner = from_last(b.shape, b.shape.size() > 1 ? 1 : 0);
  if (same_dim(last, inner)) return;
  const char* which = b.shape.size() > 1 ? "second-last" : "the only one";
  throw ShapeError(fmt::format("matmul: last dimension of a ({}) and {} of b ({}) differ",
                               last.str(), which, inner.str()),
                   {.label = "matmul_c2", .details = operand_types(std::vector<TensorType>{a, b})});
}

std::vector<TensorType> matmul_infer(const ir::InferArgs& args) {
  const TensorType& a = args.in[0];
  const TensorType& b = args.in[1];
  const DType dtype = product_dtype(a, b);
  check_inner(a, b);
  if (a.rank() < 2 || b.rank() < 2) {
    throw ShapeError("matmul: operands need at least 2 dimensions", {.label = "matmul_c1"});
  }
  const auto lead = [](const Shape& s) { return Shape(s.begin(), s.end() - 2); };
  Shape shape;
  try {
    shape = broadcast_shapes("matmul", {lead(a.shape), lead(b.shape)});
  } catch (const ShapeError& error) {
    throw ShapeError(
        error.message(),
        {.label = "matmul_c3", .hint = error.parts().hint, .details = operand_types(args.in)});
  }
  shape.push_back(from_last(a.shape, 1));
  shape.push_back(from_last(b.shape, 0));
  return {{dtype, shape}};
}

// --- evaluation ---

// One m×k by k×n product; T accumulates: double for floats. Rows of b stay in the inner loop, so
// that memory is read in order.
template <class T, class W>
void multiply(const T* a, const T* b, int64_t m, int64_t n, int64_t k, W* row, Literal& out,
              int64_t first) {
  constexpr bool kBoolean = std::same_as<T, bool>;
  for (int64_t i = 0; i < m; ++i) {
    std::fill_n(row, n, W{});
    for (int64_t p = 0; p < k; ++p) {
      const auto x = static_cast<W>(a[i * k + p]);
      const T* y = b + p * n;
      for (int64_t j = 0; j < n; ++j) {
        if constexpr (kBoolean) {
          row[j] = row[j] || (x && y[j]);
        } else {
          row[j] = elt::plus(row[j], elt::times(x, static_cast<W>(y[j])));
        }
      }
    }
    for (int64_t j = 0; j < n; j += kRun) {
      write_run(out, first + i * n + j, std::min(kRun, n - j), row + j);
    }
  }
}

template <class T, class W>
std::vector<Literal> matmul_lanes(const ir::EvalArgs& args) {
  const Literal& a = args.in[0];
  const Literal& b = args.in[1];
  const auto& dims = args.out[0].dims;
  Literal out(args.out[0].dtype, dims);
  const int64_t m = dims[dims.size() - 2];
  const int64_t n = dims[dims.size() - 1];
  const int64_t k = a.dims().back();
  const std::vector<int64_t> batch(dims.begin(), dims.end() - 2);
  const auto lead = [](const Literal& x) { return std::span(x.dims()).first(x.rank() - 2); };
  const auto read_all = [](const Literal& x) {
    auto lanes = std::make_unique<T[]>(static_cast<size_t>(x.count()));
    for (int64_t i = 0; i < x.count(); i += kRun) {
      read_run(x, i, 1, std::min(kRun, x.count() - i), lanes.get() + i);
    }
    return lanes;
  };
  const auto x = read_all(a);
  const auto y = read_all(b);
  const auto row = std::make_unique<W[]>(static_cast<size_t>(n));
  for_each_run(batch, {broadcast_strides(lead(a), batch), broadcast_strides(lead(b), batch)},
               [&](const Run& run) {
                 for (int64_t i = 0; i < run.count; ++i) {
                   multiply(x.get() + (run.at[0] + i * run.step[0]) * m * k,
                            y.get() + (run.at[1] + i * run.step[1]) * k * n, m, n, k, row.get(),
                            out, (run.first + i) * m * n);
                 }
               });
  return {std::move(out)};
}

std::vector<Literal> matmul_eval(const ir::EvalArgs& args) {
  switch (lane_of(args.in[0].dtype())) {
    case Lane::kF32: return matmul_lanes<float, double>(args);
    case Lane::kF64: return matmul_lanes<double, double>(args);
    case Lane::kI64: return matmul_lanes<int64_t, int64_t>(args);
    case Lane::kU64: return matmul_lanes<uint64_t, uint64_t>(args);
    default: return matmul_lanes<bool, bool>(args);
  }
}

// --- lowering: one element is a loop over k; passes choose better forms ---

Index matrix_index(kir::Builder& b, const Shape& shape, const Shape& result,
                   std::span<const Val> index, Val row, Val column) {
  const Shape lead(shape.begin(), shape.end() - 2);
  const Shape result_lead(result.begin(), result.end() - 2);
  Index at = broadcast_index(b, lead, result_lead, index.first(index.size() - 2));
  at.push_back(row);
  at.push_back(column);
  return at;
}

Val matmul_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Value& x = node.operands[0];
  const Value& y = node.operands[1];
  const TensorType& type = node.types[0];
  const DType acc = is_half(type.dtype) ? DType::kF32 : type.dtype;
  const Val row = index[index.size() - 2];
  const Val column = index[index.size() - 1];
  const auto term = [&](std::span<const Val> k) {
    const Val u = ctx.element(x, matrix_index(b, x.shape(), type.shape, index, row, k[0]));
    const Val v = ctx.element(y, matrix_index(b, y.shape(), type.shape, index, k[0], column));
    return elt::times(elt::Sym{&b, cast(b, u, x.dtype(), acc), acc},
                      elt::Sym{&b, cast(b, v, y.dtype(), acc), acc});
  };
  const ReduceNest nest{{from_last(x.shape(), 0)}, false};
  if (is_float(acc)) {
    const Val total = emit_float_sum(ctx, nest, index, kir::type_of(acc),
                                     [&](std::span<const Val> k) { return term(k).v; });
    return from_arith(b, total, type.dtype);
  }
  const kir::CarriedSpec carried[] = {{b.constant_int(kir::type_of(acc), 0)}};
  const auto step = [&](std::span<const Val> in, std::span<const Val> k) {
    return std::vector<Val>{elt::plus(elt::Sym{&b, in[0], acc}, term(k)).v};
  };
  return emit_reduction(ctx, nest, index, carried, step)[0];
}

std::vector<ir::Sample> matmul_samples() {
  std::vector<ir::Sample> samples;
  const auto add = [&](DType a, Shape x, DType b, Shape y) {
    samples.push_back({.in = {{a, std::move(x)}, {b, std::move(y)}}});
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!ir::contains(ir::DTypeClass::kReal, dtype)) continue;
    add(dtype, {3, 5}, dtype, {5, 4});
    add(dtype, {2, 1, 3, 4}, dtype, {3, 4, 2});
  }
  for (DType half : {DType::kF16, DType::kBF16}) {
    add(DType::kF32, {"n", 6}, half, {6, 3});
    add(half, {2, 6}, DType::kF32, {6, 3});
  }
  add(DType::kF32, {"n", "k"}, DType::kF32, {"k", 3});
  add(DType::kF32, {3, 0}, DType::kF32, {0, 2});
  add(DType::kF32, {0, 3}, DType::kF32, {3, 2});
  add(DType::kF32, {2, 1500}, DType::kF32, {1500, 2});
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef matmul{
    .name = "matmul",
    .doc =
        "The matrix product over the last axis of a and the second-last of b, batched over the "
        "others; f16 and bf16 accumulate in f32, f32 with f16 or bf16 gives f32, integers wrap.",
    .traits = ir::kAnchor,
    .min_operands = 2,
    .max_operands = 2,
    .infer = matmul_infer,
    .eval = matmul_eval,
    .lower = matmul_lower,
};
TENON_OP_SAMPLES(matmul, matmul_samples)

}  // namespace op

std::vector<const ir::OpDef*> matmul_ops() { return {&op::matmul}; }

Value matmul(const Value& x, const Value& y, LocationPtr location) {
  Value a = x;
  Value b = y;
  const auto mixes = [](DType f, DType half) { return f == DType::kF32 && is_half(half); };
  if (!mixes(a.dtype(), b.dtype()) && !mixes(b.dtype(), a.dtype())) {
    const DType common = promote(a.dtype(), b.dtype());
    a = cast(a, common, location);
    b = cast(b, common, location);
  }
  const bool row = a.shape().size() == 1;
  const bool column = b.shape().size() == 1;
  if (a.shape().empty() || b.shape().empty() || row || column) {
    with_location(location, [&] { check_inner(a.type(), b.type()); });
  }
  if (row) a = expand_dims(a, {0}, location);
  if (column) b = expand_dims(b, {1}, location);
  Value product = ir::make(op::matmul, {a, b}, {}, location);
  if (column) product = squeeze(product, std::vector<int64_t>{-1}, location);
  if (row) product = squeeze(product, std::vector<int64_t>{column ? -1 : -2}, location);
  return product;
}

}  // namespace tenon::ops
