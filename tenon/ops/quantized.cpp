#include "tenon/ops/quantized.h"

#include <cmath>

#include "tenon/ops/block_source.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/registry.h"
#include "tenon/quant/codes.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;
using quant::BlockFormat;

namespace {

constexpr int64_t kActivationBlock = 32;

const BlockFormat& find_format(std::string_view op, const ir::Attrs& attrs) {
  const std::string& encoding = attrs.s("encoding");
  if (const BlockFormat* format = quant::find_block_format(encoding)) return *format;
  std::string known;
  for (const BlockFormat& format : quant::block_formats()) {
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  throw ValueError(fmt::format("{}: unsupported encoding \"{}\"", op, encoding),
                   {.label = fmt::format("{}_c1", op),
                    .hint = fmt::format("one of {}, or one that was registered", known)});
}

void check_operand(std::string_view op, const TensorType& x, DType dtype) {
  if (x.dtype == dtype && x.rank() >= 1) return;
  throw TypeError(fmt::format("{}: expected {} with at least 1 dimension, got {}", op, name(dtype),
                              ir::brief(x)),
                  {.label = fmt::format("{}_c2", op)});
}

// The last dimension as a number of whole `unit`s.
int64_t whole_units(std::string_view op, std::string_view label, const TensorType& x, int64_t unit,
                    std::string_view what, const BlockFormat& format) {
  const Dim& last = x.shape.back();
  if (!last.is_static()) {
    throw TypeError(fmt::format("{}: the last dimension of {} is {}, not a number", op,
                                ir::brief(x), last.str()),
                    {.label = std::string(label)});
  }
  if (last.value() % unit != 0) {
    throw ShapeError(fmt::format("{}: {} {} are not whole blocks of {} of {}", op, last.value(),
                                 what, unit, format.name),
                     {.label = std::string(label)});
  }
  return last.value() / unit;
}

Shape with_last(const Shape& shape, int64_t last) {
  Shape result(shape.begin(), shape.end() - 1);
  result.push_back(last);
  return result;
}

// --- quantize(x) {encoding} ---

std::vector<TensorType> quantize_infer(const ir::InferArgs& args) {
  const BlockFormat& format = find_format(args.op, args.attrs);
  const TensorType& x = args.in[0];
  check_operand(args.op, x, DType::kF32);
  const int64_t blocks =
      whole_units(args.op, "quantize_c3", x, format.block_elements, "elements", format);
  return {{DType::kU8, with_last(x.shape, format.bytes_of(blocks * format.block_elements))}};
}

std::vector<Literal> quantize_eval(const ir::EvalArgs& args) {
  const BlockFormat& format = find_format("quantize", args.attrs);
  Literal result(DType::kU8, args.out[0].dims);
  const Literal& x = args.in[0];
  quant::encode(format, {x.as<float>(), static_cast<size_t>(x.count())},
                {result.mutable_data(), result.bytes()});
  return {std::move(result)};
}

std::vector<ir::Sample> encoded_samples(DType dtype,
                                        const std::function<int64_t(const BlockFormat&)>& unit) {
  std::vector<ir::Sample> samples;
  const double highest = dtype == DType::kU8 ? 256 : 2;
  for (const BlockFormat& format : quant::block_formats()) {
    const ir::Attrs attrs = {{"encoding", std::string(format.name)}};
    samples.push_back({.in = {{dtype, {"n", unit(format)}}}, .attrs = attrs, .hi = highest});
    samples.push_back({.in = {{dtype, {2, 3 * unit(format)}}}, .attrs = attrs, .hi = highest});
    samples.push_back({.in = {{dtype, {2, 0}}}, .attrs = attrs});
  }
  return samples;
}

std::vector<ir::Sample> quantize_samples() {
  return encoded_samples(DType::kF32, [](const BlockFormat& f) { return f.block_elements; });
}

// --- dequantize(q) {encoding} ---

std::vector<TensorType> dequantize_infer(const ir::InferArgs& args) {
  const BlockFormat& format = find_format(args.op, args.attrs);
  const TensorType& q = args.in[0];
  check_operand(args.op, q, DType::kU8);
  const int64_t blocks =
      whole_units(args.op, "dequantize_c3", q, format.block_bytes, "bytes", format);
  return {{DType::kF32, with_last(q.shape, blocks * format.block_elements)}};
}

std::vector<Literal> dequantize_eval(const ir::EvalArgs& args) {
  const BlockFormat& format = find_format("dequantize", args.attrs);
  Literal result(DType::kF32, args.out[0].dims);
  quant::decode(format, args.in[0].span(),
                {result.as_mutable<float>(), static_cast<size_t>(result.count())});
  return {std::move(result)};
}

// The element at `index`, of a format with codes.
Val decode_element(kir::Builder& b, const BlockFormat& format, const BlockSource& block, Val j) {
  const quant::CodeLayout& layout = *quant::code_layout(format.encoding);
  const BlockSource::Index at = block.index(j);
  const auto code = quant::Codes<BlockSource, 1>(block).of(format.encoding, at);
  const quant::Scales<BlockSource> scales(block);
  const BlockSource::Index group = at / layout.group;
  const Val centred = layout.zero == 0 ? code.v : (code - static_cast<uint32_t>(layout.zero)).v;
  const Val product = b.mul(scales.scale(format.encoding, group).v, block.to_real({&b, centred}).v);
  return layout.has_offset ? b.add(product, scales.offset(format.encoding, group).v) : product;
}

Val dequantize_lower(LowerContext& ctx, const ir::Node& node, uint32_t,
                     std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const BlockFormat& format = format_of(node);
  const Value& q = node.operands[0];
  // Rows without blocks: a block's index would be 0, which loads could use before the empty loop.
  if (q.shape().back() == Dim(0)) return b.constant_float(kir::Type::kF32, 0);
  Index at(index.begin(), index.end());
  const Val block = b.index_div(index.back(), Dim(format.block_elements));
  const Val start = b.mul(block, b.i64(format.block_bytes));
  const BlockSource source(b, [&](kir::Type type, Val offset) {
    at.back() = b.add(start, offset);
    return ctx.bytes(q, at, type);
  });
  if (format.is_quantized()) {
    return decode_element(b, format, source, b.index_rem(index.back(), Dim(format.block_elements)));
  }
  at.back() = start;
  switch (format.encoding) {
    case quant::Encoding::kF16: return to_arith(b, ctx.bytes(q, at, kir::Type::kF16));
    case quant::Encoding::kBF16: return to_arith(b, ctx.bytes(q, at, kir::Type::kBF16));
    default: return ctx.bytes(q, at, kir::Type::kF32);
  }
}

std::vector<ir::Sample> dequantize_samples() {
  return encoded_samples(DType::kU8, [](const BlockFormat& f) { return f.block_bytes; });
}

// --- qmatmul(x, w) {encoding, int8} ---

std::vector<TensorType> qmatmul_infer(const ir::InferArgs& args) {
  const BlockFormat& format = find_format(args.op, args.attrs);
  const TensorType& x = args.in[0];
  const TensorType& w = args.in[1];
  check_operand(args.op, x, DType::kF32);
  if (w.dtype != DType::kU8 || w.rank() != 2) {
    throw TypeError(fmt::format("qmatmul: expected weights u8[n, bytes], got {}", ir::brief(w)),
                    {.label = "qmatmul_c3"});
  }
  const int64_t k = whole_units(args.op, "qmatmul_c4", w, format.block_bytes, "bytes", format) *
                    format.block_elements;
  if (x.shape.back() != Dim(k)) {
    throw ShapeError(
        fmt::format("qmatmul: the last dimension of x is {}, but {} bytes of {} hold {} elements",
                    x.shape.back().str(), w.shape[1].str(), format.name, k),
        {.label = "qmatmul_c4",
         .hint = "weights are stored by output column: one row of blocks for each",
         .details = fmt::format("x: {}   w: {}", ir::brief(x), ir::brief(w))});
  }
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.push_back(w.shape[0]);
  return {{DType::kF32, shape}};
}

std::vector<Literal> qmatmul_eval(const ir::EvalArgs& args) {
  const BlockFormat& format = find_format("qmatmul", args.attrs);
  const Literal& x = args.in[0];
  const Literal& w = args.in[1];
  Literal result(DType::kF32, args.out[0].dims);
  const auto k = static_cast<size_t>(x.dims().back());
  const int64_t columns = w.dims()[0];
  const int64_t rows = columns == 0 ? 0 : result.count() / columns;
  std::vector<float> activations(static_cast<size_t>(rows) * k);
  std::copy_n(x.as<float>(), activations.size(), activations.data());
  if (args.attrs.b("int8") && quant::code_layout(format.encoding) != nullptr) {
    for (size_t at = 0; at < activations.size(); at += kActivationBlock) {
      int8_t codes[kActivationBlock];
      const float step = round_block(x.as<float>() + at, codes);
      for (size_t i = 0; i < kActivationBlock; ++i) {
        activations[at + i] = static_cast<float>(codes[i]) * step;
      }
    }
  }
  std::vector<float> column(k);
  const auto bytes = static_cast<size_t>(w.dims()[1]);
  for (int64_t n = 0; n < columns; ++n) {
    quant::decode(format, w.span().subspan(static_cast<size_t>(n) * bytes, bytes), column);
    for (int64_t m = 0; m < rows; ++m) {
      const float* row = activations.data() + static_cast<size_t>(m) * k;
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += static_cast<double>(row[i]) * column[i];
      result.as_mutable<float>()[m * columns + n] = static_cast<float>(sum);
    }
  }
  return {std::move(result)};
}

std::vector<ir::Sample> qmatmul_samples() {
  std::vector<ir::Sample> samples;
  for (const BlockFormat& format : quant::block_formats()) {
    for (bool int8 : {false, true}) {
      const ir::Attrs attrs = {{"encoding", std::string(format.name)}, {"int8", int8}};
      const int64_t k = format.block_elements;
      samples.push_back(
          {.in = {{DType::kF32, {2, "m", k}}, {DType::kU8, {"n", format.block_bytes}}},
           .attrs = attrs});
      samples.push_back({.in = {{DType::kF32, {2 * k}}, {DType::kU8, {33, 2 * format.block_bytes}}},
                         .attrs = attrs});
    }
  }
  return samples;
}

}  // namespace

namespace op {

const ir::OpDef quantize{
    .name = "quantize",
    .doc = "f32 rows as rows of blocks of an encoding, by its reference quantiser.",
    .traits = ir::kHost,
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"encoding", std::string(), true}},
    .infer = quantize_infer,
    .eval = quantize_eval,
};
TENON_OP_SAMPLES(quantize, quantize_samples)

const ir::OpDef dequantize{
    .name = "dequantize",
    .doc = "Rows of blocks of an encoding as f32, exactly.",
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"encoding", std::string(), true}},
    .infer = dequantize_infer,
    .eval = dequantize_eval,
    .lower = dequantize_lower,
};
TENON_OP_SAMPLES(dequantize, dequantize_samples)

const ir::OpDef qmatmul{
    .name = "qmatmul",
    .doc =
        "Matrix product with weights in an encoding, stored by output column; with int8, the "
        "activations are rounded to 8 bits in blocks of 32.",
    .min_operands = 2,
    .max_operands = 2,
    .attrs = {{"encoding", std::string(), true}, {"int8", false}},
    .infer = qmatmul_infer,
    .eval = qmatmul_eval,
};
TENON_OP_SAMPLES(qmatmul, qmatmul_samples)

}  // namespace op

std::vector<const ir::OpDef*> quantized_ops() {
  return {&op::quantize, &op::dequantize, &op::qmatmul};
}

const BlockFormat& format_of(const ir::Node& node) {
  return find_format(node.op->name, node.attrs);
}

bool decodes_by_function(const ir::Node& node) {
  return node.op == &op::dequantize && format_of(node).encoding == quant::Encoding::kRegistered;
}

float round_block(const float* x, int8_t* codes) {
  float largest = 0;
  for (int64_t i = 0; i < kActivationBlock && !std::isnan(largest); ++i) {
    const float magnitude = std::fabs(x[i]);
    if (!(magnitude <= largest)) largest = magnitude;
  }
  const float step = largest / 127.0f;
  const float inverse = quant::inverse_or_zero(step);
  for (int64_t i = 0; i < kActivationBlock; ++i) {
    const float code = std::nearbyint(x[i] * inverse);
    codes[i] = std::isfinite(code) ? static_cast<int8_t>(code) : int8_t{0};
  }
  return step;
}

Value quantize(const std::string& encoding, const Value& x, LocationPtr location) {
  return ir::make(op::quantize, {x}, {{"encoding", encoding}}, std::move(location));
}

Value dequantize(const std::string& encoding, const Value& q, LocationPtr location) {
  return ir::make(op::dequantize, {q}, {{"encoding", encoding}}, std::move(location));
}

Value qmatmul(const std::string& encoding, const Value& x, const Value& w, Activations activations,
              LocationPtr location) {
  return ir::make(op::qmatmul, {x, w},
                  {{"encoding", encoding}, {"int8", activations == Activations::kInt8}},
                  std::move(location));
}

}  // namespace tenon::ops
