#include "tenon/ops/packed_matmul.h"

#include <algorithm>
#include <array>

#include "tenon/base/error.h"
#include "tenon/base/half.h"
#include "tenon/ops/lower.h"

namespace tenon::ops {
namespace {

using ir::ConcreteType;
using ir::EvalArgs;
using ir::InferArgs;
using ir::Sample;
using ir::TensorType;

// Number of leading batch dimensions of a packed operand.
size_t packed_batch(const Shape& packed) { return packed.size() - 3; }

// matmul_packed_c1: the packed operand has at least three dimensions, the last of them 32
// matmul_packed_c2: the last dimension of a equals the second-last of the packed operand
// matmul_packed_c3: n columns fill exactly the panels of the packed operand
// matmul_packed_c4: batch dimensions broadcast
// matmul_packed_c5: operands are floats, or words of bf16 with bf16 or of i8 with u8

std::vector<TensorType> matmul_packed_infer(const InferArgs& args) {
  const TensorType& a = args.in[0];
  const TensorType& p = args.in[1];
  const Dim& n = args.attrs.shape("n").at(0);
  auto types = [&] { return fmt::format("\n  a: {}   packed: {}", brief(a), brief(p)); };
  if (p.rank() < 3 || p.shape.back() != Dim(kPanelColumns) || a.rank() < 1) {
    throw ShapeError(fmt::format("{}: not a packed operand{}", args.op, types()),
                     {.label = "matmul_packed_c1"});
  }
  const bool in_words = p.dtype == DType::kI32;
  const DType right = in_words ? args.attrs.dtype("right") : p.dtype;
  const Dim rows = in_words ? words_of(a.shape.back(), right) : a.shape.back();
  if (rows != p.shape[p.rank() - 2]) {
    throw ShapeError(
        fmt::format("{}: last dimension of a ({}) and rows of the packed operand ({}) "
                    "differ{}",
                    args.op, a.shape.back().str(), p.shape[p.rank() - 2].str(), types()),
        {.label = "matmul_packed_c2"});
  }
  if (panels_of(n) != p.shape[p.rank() - 3]) {
    throw ShapeError(fmt::format("{}: {} columns do not fill {} panels of 32", args.op, n.str(),
                                 p.shape[p.rank() - 3].str()),
                     {.label = "matmul_packed_c3"});
  }
  const bool bytes = right == DType::kI8 && a.dtype == DType::kU8;
  const bool fits = in_words ? bytes || (right == DType::kBF16 && a.dtype == DType::kBF16)
                             : is_float(a.dtype) && is_float(right);
  if (!fits) {
    throw TypeError(fmt::format("{}: no product of {} and {}{}", args.op, name(a.dtype),
                                name(right), in_words ? " in words" : ""),
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
  const Dim& parts = args.attrs.shape("parts").at(0);
  if (parts != Dim(1)) {
    shape.insert(shape.begin(), parts);
    return {{accumulation_type(a.dtype, right), shape}};
  }
  return {{bytes ? DType::kI32 : promote(a.dtype, right), shape}};
}

// Element k of a column whose first word is `first`.
double word_element(const Literal& words, int64_t first, int64_t k, DType dtype) {
  const int64_t each = elements_in_word(dtype);
  const auto word = static_cast<uint32_t>(words.get_int(first + k / each * kPanelColumns));
  const uint32_t bits = word >> (32 / each * (k % each));
  if (dtype == DType::kI8) return static_cast<int8_t>(bits);
  return bf16_to_float(static_cast<uint16_t>(bits));
}

// Sums of products of bytes are exact in a double up to 2^39 of them.
int64_t wrap_to_i32(double sum) {
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
}

std::vector<Literal> matmul_packed_eval(const EvalArgs& args) {
  const Literal& a = args.in[0];
  const Literal& p = args.in[1];
  const ConcreteType& type = args.out[0];
  Literal out(type.dtype, type.dims);
  const int64_t depth = a.dims().back();
  const bool in_parts = args.attrs.shape("parts").at(0) != Dim(1);
  const int64_t parts = in_parts ? type.dims[0] : 1;
  const int64_t part_depth = depth_of_part(depth, std::max<int64_t>(parts, 1)).value();
  const std::vector<int64_t> dims(type.dims.begin() + (in_parts ? 1 : 0), type.dims.end());
  const int64_t columns = dims.back();
  int64_t count = p.dims()[p.rank() - 3];
  const bool in_words = p.dtype() == DType::kI32;
  const int64_t rows = p.dims()[p.rank() - 2];
  const auto element = [&](int64_t first, int64_t k) {
    if (!in_words) return p.get_double(first + k * kPanelColumns);
    return word_element(p, first, k, args.attrs.dtype("right"));
  };
  size_t batch_rank = p.rank() - 3;
  int64_t rows_per_batch =
      batch_rank > 0 ? dims[dims.size() - 2] : (columns == 0 ? 0 : out.count() / parts / columns);
  // Batch strides, 0 where broadcast.
  int64_t batches = 1;
  for (size_t i = 0; i < batch_rank; ++i) batches *= dims[i];
  for (int64_t task = 0; task < parts * batches; ++task) {
    const int64_t first = task / batches * part_depth;
    const int64_t last = std::min(first + part_depth, depth);
    int64_t a_batch = 0;
    int64_t p_batch = 0;
    int64_t rest = task % batches;
    int64_t a_stride = 1;
    int64_t p_stride = 1;
    for (size_t i = batch_rank; i-- > 0;) {
      int64_t at = rest % dims[i];
      rest /= dims[i];
      if (a.dims()[i] != 1) a_batch += at * a_stride;
      if (p.dims()[i] != 1) p_batch += at * p_stride;
      a_stride *= a.dims()[i];
      p_stride *= p.dims()[i];
    }
    for (int64_t row = 0; row < rows_per_batch; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        int64_t left = (a_batch * rows_per_batch + row) * depth;
        int64_t right = (p_batch * count + column / kPanelColumns) * rows * kPanelColumns +
                        column % kPanelColumns;
        for (int64_t k = first; k < last; ++k) {
          sum += a.get_double(left + k) * element(right, k);
        }
        const int64_t at = (task * rows_per_batch + row) * columns + column;
        if (type.dtype == DType::kI32) {
          out.set_int(at, wrap_to_i32(sum));
        } else {
          out.set_double(at, sum);
        }
      }
    }
  }
  return {out};
}

kir::Val zero_of(kir::Builder& b, DType dtype) {
  const kir::Type type = kir::type_of(dtype);
  return kir::is_float(type) ? b.constant_float(type, 0.0) : b.constant_int(type, 0);
}

kir::Val part_of_word(kir::Builder& b, kir::Val word, kir::Val part, DType dtype) {
  const int64_t width = 32 / elements_in_word(dtype);
  const kir::Val number = b.convert(kir::Op::kIntTrunc, kir::Type::kI32, part);
  const kir::Val shift = b.binary(kir::Op::kMul, number, b.constant_int(kir::Type::kI32, width));
  const kir::Val bits = b.binary(kir::Op::kLShr, word, shift);
  if (dtype == DType::kI8) return b.convert(kir::Op::kIntTrunc, kir::Type::kI8, bits);
  const kir::Val half = b.convert(kir::Op::kIntTrunc, kir::Type::kI16, bits);
  return b.convert(kir::Op::kBitcast, kir::Type::kBF16, half);
}

kir::Val matmul_packed_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                             std::span<const kir::Val> index) {
  kir::Builder& b = ctx.builder();
  const ir::Value& a = node.operands[0];
  const ir::Value& p = node.operands[1];
  const bool in_words = is_in_words(p);
  const DType right_type = in_words ? node.attrs.dtype("right") : p.dtype();
  const int64_t each = in_words ? elements_in_word(right_type) : 1;
  DType acc = accumulation_type(a.dtype(), right_type);
  size_t batch = packed_batch(p.shape());
  const Dim& depth_dim = a.shape().back();
  const Dim& parts = node.attrs.shape("parts").at(0);
  kir::Val first = b.i64(0);
  kir::Val last = b.dim(depth_dim);
  if (parts != Dim(1)) {
    const Dim part = depth_of_part(depth_dim, parts);
    first = b.mul(index[0], b.dim(part));
    last = b.binary(kir::Op::kSMin, b.add(first, b.dim(part)), last);
    index = index.subspan(1);
  }
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
  int depth = b.depth_of(first);
  for (kir::Val v : index) depth = std::max(depth, b.depth_of(v));
  kir::Val sum = nullptr;
  b.at_depth(depth, [&] {
    std::array<kir::CarriedSpec, 1> carried = {{{zero_of(b, acc)}}};
    sum = b.loop(first, last, {}, carried,
                 [&](kir::Val k, std::span<const kir::Val> c) -> std::vector<kir::Val> {
                   left.back() = k;
                   right[right.size() - 2] = each == 1 ? k : b.index_div(k, Dim(each));
                   kir::Val y = ctx.element(p, right);
                   if (in_words) y = part_of_word(b, y, b.index_rem(k, Dim(each)), right_type);
                   kir::Val x = cast(b, ctx.element(a, left), a.dtype(), acc);
                   y = cast(b, y, right_type, acc);
                   if (is_float(acc)) return {b.ternary(kir::Op::kMulAdd, x, y, c[0])};
                   return {b.add(c[0], b.mul(x, y))};
                 })[0];
  });
  return cast(b, sum, acc, node.types[0].dtype);
}

std::vector<Sample> matmul_packed_samples() {
  auto in_parts = [](DType dtype, Shape a, Shape p, Dim n, int64_t parts) {
    return Sample{{{dtype, std::move(a)}, {dtype, std::move(p)}},
                  {{"n", Shape{std::move(n)}}, {"parts", Shape{parts}}}};
  };
  auto packed = [](DType dtype, Shape a, Shape p, Dim n) {
    return Sample{{{dtype, std::move(a)}, {dtype, std::move(p)}}, {{"n", Shape{std::move(n)}}}};
  };
  auto words = [](DType dtype, Shape a, Shape p, Dim n, DType right, int64_t parts = 1) {
    return Sample{{{dtype, std::move(a)}, {DType::kI32, std::move(p)}},
                  {{"n", Shape{std::move(n)}}, {"right", right}, {"parts", Shape{parts}}}};
  };
  return {packed(DType::kF32, {3, 5}, {2, 5, 32}, 40),
          packed(DType::kF32, {2, 3, 4}, {1, 4, 32}, 32),
          packed(DType::kF32, {2, 3, 4}, {2, 1, 4, 32}, 20),
          packed(DType::kF64, {1, 0}, {1, 0, 32}, 7),
          packed(DType::kBF16, {4}, {1, 4, 32}, 9),
          packed(DType::kF32, {"m", 6}, {1, 6, 32}, 32),
          in_parts(DType::kF32, {3, 150}, {2, 150, 32}, 33, 2),
          in_parts(DType::kBF16, {2, 2, 70}, {2, 70, 32}, 64, 3),
          words(DType::kU8, {2, 3, 65}, {1, 32, 32}, 32, DType::kI8),
          words(DType::kU8, {"m", 7}, {1, 16, 32}, 9, DType::kI8),
          words(DType::kBF16, {2, 150}, {1, 80, 32}, 9, DType::kBF16, 2),
          words(DType::kU8, {2, 3, 300}, {2, 1, 80, 32}, 17, DType::kI8, 3)};
}

}  // namespace

Dim depth_of_part(const Dim& depth, const Dim& parts) {
  if (parts == Dim(1)) return depth;
  const Dim unit(64);
  return floor_div(depth + parts * unit - Dim(1), parts * unit) * unit;
}

DType accumulation_type(DType a, DType b) {
  if (!is_float(a) && !is_float(b)) return DType::kI32;
  return a == DType::kF64 || b == DType::kF64 ? DType::kF64 : DType::kF32;
}

const ir::OpDef kMatmulPacked = {
    .name = "matmul_packed",
    .doc = "Matrix product with a right operand packed by matmul_pack.",
    .traits = ir::kAnchor,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"n", Shape{}, true}, {"right", DType::kBF16}, {"parts", Shape{1}}},
    .infer = matmul_packed_infer,
    .eval = matmul_packed_eval,
    .lower = matmul_packed_lower,
};
TENON_OP_SAMPLES(kMatmulPacked, matmul_packed_samples)

ir::Value matmul_packed(const ir::Value& a, const ir::Value& packed, const Dim& n, DType right,
                        ir::LocationPtr location, const Dim& parts) {
  ir::Attrs attrs{{"n", Shape{n}}};
  if (parts != Dim(1)) attrs.set("parts", Shape{parts});
  if (is_in_words(packed)) attrs.set("right", right);
  return ir::make(kMatmulPacked, {a, packed}, std::move(attrs), std::move(location));
}

}  // namespace tenon::ops
