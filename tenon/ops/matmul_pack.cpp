#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/packed_matmul.h"

namespace tenon::ops {
namespace {

using ir::ConcreteType;
using ir::EvalArgs;
using ir::InferArgs;
using ir::Sample;
using ir::TensorType;

// matmul_pack_c1: the operand has at least two dimensions
// matmul_pack_c2: the operand is a float; for words bf16 or i8

std::vector<TensorType> matmul_pack_infer(const InferArgs& args) {
  const TensorType& b = args.in[0];
  if (b.rank() < 2) {
    throw ShapeError(fmt::format("{}: expected at least 2 dimensions, got {}", args.op, brief(b)),
                     {.label = "matmul_pack_c1"});
  }
  const bool words = args.attrs.b("words");
  if (words ? b.dtype != DType::kBF16 && b.dtype != DType::kI8 : !is_float(b.dtype)) {
    throw TypeError(fmt::format("{}: expected {}, got {}", args.op,
                                words ? "bf16 or i8" : "a float dtype", name(b.dtype)),
                    {.label = "matmul_pack_c2"});
  }
  Shape shape(b.shape.begin(), b.shape.end() - 2);
  shape.push_back(panels_of(b.shape.back()));
  const Dim& depth = b.shape[b.rank() - 2];
  shape.push_back(words ? words_of(depth, b.dtype) : depth);
  shape.push_back(Dim(kPanelColumns));
  return {{words ? DType::kI32 : b.dtype, shape}};
}

Literal pack_words(const Literal& b, const ConcreteType& type) {
  Literal out(type.dtype, type.dims);
  const size_t rank = type.dims.size();
  const auto size = static_cast<int64_t>(size_of(b.dtype()));
  const int64_t each = elements_in_word(b.dtype());
  const int64_t width = b.dims()[b.rank() - 1];
  const int64_t depth = b.dims()[b.rank() - 2];
  const int64_t words = type.dims[rank - 2];
  const int64_t count = type.dims[rank - 3];
  for (int64_t i = 0; i < out.count() * each; ++i) {
    const int64_t part = i % each;
    const int64_t at = i / each;
    const int64_t column =
        at / (words * kPanelColumns) % count * kPanelColumns + at % kPanelColumns;
    const int64_t row = at / kPanelColumns % words * each + part;
    const int64_t batch = at / (words * kPanelColumns * count);
    if (column >= width || row >= depth) continue;
    std::copy_n(b.data() + ((batch * depth + row) * width + column) * size, size,
                out.mutable_data() + at * 4 + part * size);
  }
  return out;
}

std::vector<Literal> matmul_pack_eval(const EvalArgs& args) {
  const Literal& b = args.in[0];
  const ConcreteType& type = args.out[0];
  if (args.attrs.b("words")) return {pack_words(b, type)};
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

// A word from the elements of adjacent rows, each as unsigned bits.
kir::Val pack_word(LowerContext& ctx, const ir::Value& operand, std::span<const kir::Val> index) {
  kir::Builder& b = ctx.builder();
  const size_t rank = index.size();
  const int64_t each = elements_in_word(operand.dtype());
  const Dim& width = operand.shape().back();
  const Dim& depth = operand.shape()[operand.shape().size() - 2];
  const kir::Val column = b.add(b.mul(index[rank - 3], b.i64(kPanelColumns)), index[rank - 1]);
  const auto divides = [](const Dim& size, int64_t unit) {
    return size.is_static() && size.value() % unit == 0;
  };
  const bool whole_rows = divides(depth, each * kir::kPanelDotWords);
  const bool whole_columns = divides(width, kPanelColumns);
  kir::Val word = b.constant_int(kir::Type::kI32, 0);
  for (int64_t part = 0; part < each; ++part) {
    Index source(index.begin(), index.end() - 3);
    source.push_back(b.add(b.mul(index[rank - 2], b.i64(each)), b.i64(part)));
    source.push_back(column);
    kir::Val inside = b.boolean(true);
    if (!whole_rows) inside = b.cmp(kir::Pred::kSLt, source[source.size() - 2], b.dim(depth));
    if (!whole_columns) {
      inside = b.binary(kir::Op::kAnd, inside, b.cmp(kir::Pred::kSLt, column, b.dim(width)));
    }
    const bool always = whole_rows && whole_columns;
    kir::Val bits = always ? ctx.element(operand, source) : ctx.element_if(operand, source, inside);
    if (operand.dtype() == DType::kBF16) bits = b.convert(kir::Op::kBitcast, kir::Type::kI16, bits);
    bits = b.convert(kir::Op::kZExt, kir::Type::kI32, bits);
    bits = b.select(inside, bits, b.constant_int(kir::Type::kI32, 0));
    const kir::Val shift = b.constant_int(kir::Type::kI32, 32 / each * part);
    word = b.binary(kir::Op::kOr, word, b.binary(kir::Op::kShl, bits, shift));
  }
  return word;
}

kir::Val matmul_pack_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                           std::span<const kir::Val> index) {
  kir::Builder& b = ctx.builder();
  const ir::Value& operand = node.operands[0];
  if (node.attrs.b("words")) return pack_word(ctx, operand, index);
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
          {{{DType::kF64, {4, "n"}}}, {}},
          {{{DType::kBF16, {5, 40}}}, {{"words", true}}},
          {{{DType::kBF16, {2, 33, 7}}}, {{"words", true}}},
          {{{DType::kI8, {"k", 33}}}, {{"words", true}}}};
}

}  // namespace

Dim panels_of(const Dim& columns) {
  return floor_div(columns + Dim(kPanelColumns - 1), Dim(kPanelColumns));
}

int64_t elements_in_word(DType dtype) { return 4 / static_cast<int64_t>(size_of(dtype)); }

Dim words_of(const Dim& depth, DType dtype) {
  const Dim unit(kir::kPanelDotWords * elements_in_word(dtype));
  return floor_div(depth + unit - Dim(1), unit) * Dim(kir::kPanelDotWords);
}

const ir::OpDef kMatmulPack = {
    .name = "matmul_pack",
    .doc = "Lays the right operand of a matrix product out in panels of 32 columns.",
    .traits = ir::kMovement,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"words", false}, {"in_place", false}},
    .infer = matmul_pack_infer,
    .eval = matmul_pack_eval,
    .lower = matmul_pack_lower,
};
TENON_OP_SAMPLES(kMatmulPack, matmul_pack_samples)

ir::Value matmul_pack(const ir::Value& b, bool words, ir::LocationPtr location, bool in_place) {
  ir::Attrs attrs{{"words", words}};
  if (in_place) attrs.set("in_place", true);
  return ir::make(kMatmulPack, {b}, std::move(attrs), std::move(location));
}

}  // namespace tenon::ops
