#include "tenon/ops/packed_matmul.h"

#include <algorithm>
#include <array>

#include "tenon/base/error.h"
#include "tenon/ops/lower.h"

namespace tenon::ops {
namespace {

using ir::ConcreteType;
using ir::EvalArgs;
using ir::InferArgs;
using ir::Sample;
using ir::TensorType;

Dim panels(const Dim& columns) {
  return floor_div(columns + Dim(kPanelColumns - 1), Dim(kPanelColumns));
}

// Number of leading batch dimensions of a packed operand.
size_t packed_batch(const Shape& packed) { return packed.size() - 3; }

// ── matmul_pack ────────────────────────────────────────────────────────────────────────────────
// matmul_pack_c1: the operand has at least two dimensions
// matmul_pack_c2: the operand is a float

std::vector<TensorType> matmul_pack_infer(const InferArgs& args) {
  const TensorType& b = args.in[0];
  if (b.rank() < 2) {
    throw ShapeError(fmt::format("{}: expected at least 2 dimensions, got {}", args.op, brief(b)),
                     {.label = "matmul_pack_c1"});
  }
  if (!is_float(b.dtype)) {
    throw TypeError(fmt::format("{}: expected a float dtype, got {}", args.op, name(b.dtype)),
                    {.label = "matmul_pack_c2"});
  }
  Shape shape(b.shape.begin(), b.shape.end() - 2);
  shape.push_back(panels(b.shape.back()));
  shape.push_back(b.shape[b.rank() - 2]);
  shape.push_back(Dim(kPanelColumns));
  return {{b.dtype, shape}};
}

std::vector<Literal> matmul_pack_eval(const EvalArgs& args) {
  const Literal& b = args.in[0];
  const ConcreteType& type = args.out[0];
  Literal out(type.dtype, type.dims);
  size_t rank = type.dims.size();
  int64_t width = b.dims()[b.rank() - 1];
  int64_t rows = type.dims[rank - 2];
  int64_t count = type.dims[rank - 3];
  int64_t matrix = rows * width;
  int64_t batch = matrix == 0 ? 0 : b.count() / matrix;
  size_t bytes = size_of(type.dtype);
  for (int64_t i = 0; i < batch * count * rows; ++i) {
    int64_t row = i % rows;
    int64_t panel = i / rows % count;
    int64_t first = panel * kPanelColumns;
    int64_t columns = std::min(kPanelColumns, width - first);
    const std::byte* from =
        b.data() + static_cast<size_t>((i / rows / count) * matrix + row * width + first) * bytes;
    std::copy_n(from, static_cast<size_t>(columns) * bytes,
                out.mutable_data() + static_cast<size_t>(i * kPanelColumns) * bytes);
  }
  return {out};
}

kir::Val matmul_pack_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                           std::span<const kir::Val> index) {
  kir::Builder& b = ctx.builder();
  const ir::Value& operand = node.operands[0];
  size_t rank = index.size();
  kir::Val column = b.add(b.mul(index[rank - 3], b.i64(kPanelColumns)), index[rank - 1]);
  Index source(index.begin(), index.end() - 3);
  source.push_back(index[rank - 2]);
  source.push_back(column);
  const Dim& width = operand.shape().back();
  if (width.is_static() && width.value() % kPanelColumns == 0) return ctx.element(operand, source);
  kir::Val inside = b.cmp(kir::Pred::kSLt, column, b.dim(width));
  kir::Val zero = b.constant_float(kir::type_of(operand.dtype()), 0.0);
  return b.select(inside, ctx.element_if(operand, source, inside), zero);
}

std::vector<Sample> matmul_pack_samples() {
  return {{{{DType::kF32, {5, 40}}}, {}},
          {{{DType::kF32, {2, 3, 32}}}, {}},
          {{{DType::kBF16, {0, 7}}}, {}},
          {{{DType::kF64, {4, "n"}}}, {}}};
}

// ── matmul_packed ──────────────────────────────────────────────────────────────────────────────
// matmul_packed_c1: the packed operand has at least three dimensions, the last of them 32
// matmul_packed_c2: the last dimension of a equals the second-last of the packed operand
// matmul_packed_c3: n columns fill exactly the panels of the packed operand
// matmul_packed_c4: batch dimensions broadcast
// matmul_packed_c5: operands are floats

std::vector<TensorType> matmul_packed_infer(const InferArgs& args) {
  const TensorType& a = args.in[0];
  const TensorType& p = args.in[1];
  const Dim& n = args.attrs.shape("n").at(0);
  auto types = [&] { return fmt::format("\n  a: {}   packed: {}", brief(a), brief(p)); };
  if (p.rank() < 3 || p.shape.back() != Dim(kPanelColumns) || a.rank() < 1) {
    throw ShapeError(fmt::format("{}: not a packed operand{}", args.op, types()),
                     {.label = "matmul_packed_c1"});
  }
  if (a.shape.back() != p.shape[p.rank() - 2]) {
    throw ShapeError(
        fmt::format("{}: last dimension of a ({}) and rows of the packed operand ({}) "
                    "differ{}",
                    args.op, a.shape.back().str(), p.shape[p.rank() - 2].str(), types()),
        {.label = "matmul_packed_c2"});
  }
  if (panels(n) != p.shape[p.rank() - 3]) {
    throw ShapeError(fmt::format("{}: {} columns do not fill {} panels of 32", args.op, n.str(),
                                 p.shape[p.rank() - 3].str()),
                     {.label = "matmul_packed_c3"});
  }
  if (!is_float(a.dtype) || !is_float(p.dtype)) {
    throw TypeError(fmt::format("{}: expected float operands, got {} and {}", args.op,
                                name(a.dtype), name(p.dtype)),
                    {.label = "matmul_packed_c5"});
  }
  Shape shape(a.shape.begin(), a.shape.end() - 1);
  size_t batch = packed_batch(p.shape);
  if (batch > 0) {
    if (a.rank() != batch + 2) {
      throw ShapeError(fmt::format("{}: batch dimensions differ in number{}", args.op, types()),
                       {.label = "matmul_packed_c4"});
    }
    for (size_t i = 0; i < batch; ++i) {
      if (a.shape[i] == p.shape[i] || p.shape[i] == Dim(1)) continue;
      if (a.shape[i] != Dim(1)) {
        throw ShapeError(fmt::format("{}: batch dimension {} does not broadcast ({} and {}){}",
                                     args.op, i, a.shape[i].str(), p.shape[i].str(), types()),
                         {.label = "matmul_packed_c4"});
      }
      shape[i] = p.shape[i];
    }
  }
  shape.push_back(n);
  return {{promote(a.dtype, p.dtype), shape}};
}

std::vector<Literal> matmul_packed_eval(const EvalArgs& args) {
  const Literal& a = args.in[0];
  const Literal& p = args.in[1];
  const ConcreteType& type = args.out[0];
  Literal out(type.dtype, type.dims);
  int64_t depth = a.dims().back();
  int64_t columns = type.dims.back();
  int64_t count = p.dims()[p.rank() - 3];
  size_t batch_rank = p.rank() - 3;
  int64_t rows_per_batch =
      batch_rank > 0 ? type.dims[type.dims.size() - 2] : (columns == 0 ? 0 : out.count() / columns);
  // Batch strides, 0 where broadcast.
  int64_t batches = 1;
  for (size_t i = 0; i < batch_rank; ++i) batches *= type.dims[i];
  for (int64_t batch = 0; batch < batches; ++batch) {
    int64_t a_batch = 0;
    int64_t p_batch = 0;
    int64_t rest = batch;
    int64_t a_stride = 1;
    int64_t p_stride = 1;
    for (size_t i = batch_rank; i-- > 0;) {
      int64_t at = rest % type.dims[i];
      rest /= type.dims[i];
      if (a.dims()[i] != 1) a_batch += at * a_stride;
      if (p.dims()[i] != 1) p_batch += at * p_stride;
      a_stride *= a.dims()[i];
      p_stride *= p.dims()[i];
    }
    for (int64_t row = 0; row < rows_per_batch; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        int64_t left = (a_batch * rows_per_batch + row) * depth;
        int64_t right = (p_batch * count + column / kPanelColumns) * depth * kPanelColumns +
                        column % kPanelColumns;
        for (int64_t k = 0; k < depth; ++k) {
          sum += a.get_double(left + k) * p.get_double(right + k * kPanelColumns);
        }
        out.set_double((batch * rows_per_batch + row) * columns + column, sum);
      }
    }
  }
  return {out};
}

kir::Val matmul_packed_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                             std::span<const kir::Val> index) {
  kir::Builder& b = ctx.builder();
  const ir::Value& a = node.operands[0];
  const ir::Value& p = node.operands[1];
  DType acc = accumulation_type(a.dtype(), p.dtype());
  size_t batch = packed_batch(p.shape());
  Index left(index.begin(), index.end() - 1);
  Index right;
  for (size_t i = 0; i < batch; ++i) {
    if (a.shape()[i] == Dim(1)) left[i] = b.i64(0);
    right.push_back(p.shape()[i] == Dim(1) ? b.i64(0) : index[i]);
  }
  right.push_back(b.index_div(index.back(), Dim(kPanelColumns)));
  left.push_back(nullptr);
  right.push_back(nullptr);
  right.push_back(b.index_rem(index.back(), Dim(kPanelColumns)));
  int depth = 0;
  for (kir::Val v : index) depth = std::max(depth, b.depth_of(v));
  kir::Val sum = nullptr;
  b.at_depth(depth, [&] {
    std::array<kir::CarriedSpec, 1> carried = {{{b.constant_float(kir::type_of(acc), 0.0)}}};
    sum = b.loop(b.i64(0), b.dim(a.shape().back()), {}, carried,
                 [&](kir::Val k, std::span<const kir::Val> c) -> std::vector<kir::Val> {
                   left.back() = k;
                   right[right.size() - 2] = k;
                   kir::Val x = cast(b, ctx.element(a, left), a.dtype(), acc);
                   kir::Val y = cast(b, ctx.element(p, right), p.dtype(), acc);
                   return {b.ternary(kir::Op::kMulAdd, x, y, c[0])};
                 })[0];
  });
  return cast(b, sum, acc, node.types[0].dtype);
}

std::vector<Sample> matmul_packed_samples() {
  auto packed = [](DType dtype, Shape a, Shape p, Dim n) {
    return Sample{{{dtype, std::move(a)}, {dtype, std::move(p)}}, {{"n", Shape{std::move(n)}}}};
  };
  return {packed(DType::kF32, {3, 5}, {2, 5, 32}, 40),
          packed(DType::kF32, {2, 3, 4}, {1, 4, 32}, 32),
          packed(DType::kF32, {2, 3, 4}, {2, 1, 4, 32}, 20),
          packed(DType::kF64, {1, 0}, {1, 0, 32}, 7),
          packed(DType::kBF16, {4}, {1, 4, 32}, 9),
          packed(DType::kF32, {"m", 6}, {1, 6, 32}, 32)};
}

}  // namespace

DType accumulation_type(DType a, DType b) {
  return a == DType::kF64 || b == DType::kF64 ? DType::kF64 : DType::kF32;
}

const ir::OpDef kMatmulPack = {
    .name = "matmul_pack",
    .doc = "Lays the right operand of a matrix product out in panels of 32 columns.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .infer = matmul_pack_infer,
    .eval = matmul_pack_eval,
    .lower = matmul_pack_lower,
    .samples = matmul_pack_samples,
};

const ir::OpDef kMatmulPacked = {
    .name = "matmul_packed",
    .doc = "Matrix product with a right operand packed by matmul_pack.",
    .traits = ir::kAnchor,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"n", Shape{}, true}},
    .infer = matmul_packed_infer,
    .eval = matmul_packed_eval,
    .lower = matmul_packed_lower,
    .samples = matmul_packed_samples,
};

ir::Value matmul_pack(const ir::Value& b, ir::LocationPtr location) {
  return ir::make(kMatmulPack, {b}, {}, std::move(location));
}

ir::Value matmul_packed(const ir::Value& a, const ir::Value& packed, const Dim& n,
                        ir::LocationPtr location) {
  return ir::make(kMatmulPacked, {a, packed}, {{"n", Shape{n}}}, std::move(location));
}

}  // namespace tenon::ops
