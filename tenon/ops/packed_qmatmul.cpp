#include "tenon/ops/packed_qmatmul.h"

#include <algorithm>
#include <array>

#include "tenon/ops/block_source.h"
#include "tenon/ops/checks.h"
#include "tenon/ops/lower.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/quantized.h"
#include "tenon/quant/codes.h"

namespace tenon::ops {

using ir::TensorType;
using kir::Val;
using quant::BlockFormat;
using quant::CodeLayout;

namespace {

struct Packing {
  const BlockFormat& format;
  const CodeLayout& layout;

  int64_t words() const { return code_words(layout); }
  // Bits above the nibbles, 0 for bytes.
  int extra_bits() const { return layout.code_bits == 8 ? 0 : layout.code_bits - 4; }
  // Words of four codes whose upper bits share one word.
  int64_t sharing() const { return extra_bits() == 0 ? 1 : 8 / extra_bits(); }
  int64_t groups() const { return kQuantBlock / layout.group; }
  int64_t scale_rows() const { return groups() * (layout.has_offset ? 2 : 1); }
  DType scale_type() const { return layout.half_scales ? DType::kF16 : DType::kF32; }
};

Packing packing_of(const ir::Attrs& attrs) {
  const BlockFormat* format = quant::find_block_format(attrs.s("encoding"));
  const CodeLayout* layout = format == nullptr ? nullptr : quant::code_layout(format->encoding);
  check_internal(layout != nullptr, "an encoding with integer codes");
  return {*format, *layout};
}

// [panels, blocks] of w.
Shape panel_shape(const Packing& packing, const TensorType& w) {
  check_internal(w.dtype == DType::kU8 && w.rank() == 2, "weights are a matrix of bytes");
  const int64_t k = w.shape[1].value() / packing.format.block_bytes * packing.format.block_elements;
  return {panels_of(w.shape[0]), k / kQuantBlock};
}

// Where a block of 32 elements stands: the format's block, and the first element inside it.
struct Place {
  int64_t byte;
  int64_t element;
};

Place place_of(const BlockFormat& format, int64_t block) {
  const int64_t first = block * kQuantBlock;
  return {first / format.block_elements * format.block_bytes, first % format.block_elements};
}

// Calls visit(flat index / 32, first column of the panel, block, row of 32) for every row.
template <class Visit>
void for_each_row(const std::vector<int64_t>& dims, const Visit& visit) {
  int64_t at = 0;
  for (int64_t p = 0; p < dims[0]; ++p) {
    for (int64_t block = 0; block < dims[1]; ++block) {
      for (int64_t row = 0; row < dims[2]; ++row) visit(at++, p * kPanelColumns, block, row);
    }
  }
}

const std::byte* column_bytes(const Literal& w, int64_t column) {
  return w.data() + std::min(column, w.dims()[0] - 1) * w.dims()[1];
}

// The source of the format's block that holds element 32·block of `column`, as kernel code, and the
// element's number in it.
struct PlacedSource {
  BlockSource source;
  Val element;
};

PlacedSource source_at(LowerContext& ctx, const Packing& packing, const Value& w, Val panel,
                       Val block, Val lane) {
  kir::Builder& b = ctx.builder();
  const Dim& columns = w.shape()[0];
  Val column = b.add(b.mul(panel, b.i64(kPanelColumns)), lane);
  if (!columns.is_static() || columns.value() % kPanelColumns != 0) {
    column = b.binary(kir::Op::kSMin, column, b.sub(b.dim(columns), b.i64(1)));
  }
  const Val first = b.mul(block, b.i64(kQuantBlock));
  const Dim elements(packing.format.block_elements);
  const Val start = b.mul(b.index_div(first, elements), b.i64(packing.format.block_bytes));
  BlockSource::Load load = [&ctx, w, column, start](kir::Type type, Val at) {
    const std::array<Val, 2> index = {column, ctx.builder().add(start, at)};
    return ctx.bytes(w, index, type);
  };
  return {BlockSource(b, std::move(load)), b.index_rem(first, elements)};
}

// --- qmatmul_codes(w) {encoding} ---

std::vector<TensorType> codes_infer(const ir::InferArgs& args) {
  const Packing packing = packing_of(args.attrs);
  Shape shape = panel_shape(packing, args.in[0]);
  shape.insert(shape.end(), {packing.words(), kPanelColumns});
  return {{DType::kU32, shape}};
}

// Words of the packed codes; `j` is the block's first element.
template <class Source, class Index>
auto nibble_word(const Packing& packing, const Source& source, Index j, Index word) {
  const quant::Codes<Source, 4> codes(source);
  const quant::Encoding encoding = packing.format.encoding;
  const auto low = codes.of(encoding, j + word * 4) & 0x0f0f0f0fu;
  const auto high = codes.of(encoding, j + word * 4 + kQuantBlock / 2) & 0x0f0f0f0fu;
  return low | high << 4;
}

// Upper bits of the codes of `sharing` words, from the word'th of these groups on.
template <class Source, class Index>
auto upper_word(const Packing& packing, const Source& source, Index j, Index word) {
  const quant::Codes<Source, 4> codes(source);
  const uint32_t mask = packing.extra_bits() == 1 ? 0x01010101u : 0x03030303u;
  const auto bits = [&](int64_t i) {
    const auto code = codes.of(packing.format.encoding, j + word * (4 * packing.sharing()) + 4 * i);
    return ((code >> 4) & mask) << (packing.extra_bits() * static_cast<int>(i));
  };
  auto all = bits(0);
  for (int64_t i = 1; i < packing.sharing(); ++i) all = all | bits(i);
  return all;
}

std::vector<Literal> codes_eval(const ir::EvalArgs& args) {
  const Packing packing = packing_of(args.attrs);
  Literal result(DType::kU32, args.out[0].dims);
  auto* out = result.as_mutable<uint32_t>();
  for_each_row(args.out[0].dims, [&](int64_t at, int64_t column, int64_t block, int64_t word) {
    const Place place = place_of(packing.format, block);
    for (int64_t j = 0; j < kPanelColumns; ++j) {
      const quant::BlockBytes source{column_bytes(args.in[0], column + j) + place.byte};
      uint32_t& to = out[at * kPanelColumns + j];
      if (packing.layout.code_bits == 8) {
        to = quant::Codes<quant::BlockBytes, 4>(source).of(packing.format.encoding,
                                                           place.element + word * 4);
      } else {
        to = word < 4 ? nibble_word(packing, source, place.element, word)
                      : upper_word(packing, source, place.element, word - 4);
      }
    }
  });
  return {std::move(result)};
}

Val codes_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Packing packing = packing_of(node.attrs);
  const PlacedSource at = source_at(ctx, packing, node.operands[0], index[0], index[1], index[3]);
  const BlockSource::Index j = at.source.index(at.element);
  const BlockSource::Index word = at.source.index(index[2]);
  if (packing.layout.code_bits == 8) {
    return quant::Codes<BlockSource, 4>(at.source).of(packing.format.encoding, j + word * 4).v;
  }
  if (packing.extra_bits() == 0) return nibble_word(packing, at.source, j, word).v;
  // Both readings lie inside the block.
  const auto low = at.source.index(b.binary(kir::Op::kSMin, word.v, b.i64(3)));
  const auto upper = at.source.index(b.binary(kir::Op::kSMax, b.sub(word.v, b.i64(4)), b.i64(0)));
  return b.select(b.cmp(kir::Pred::kSLt, word.v, b.i64(4)),
                  nibble_word(packing, at.source, j, low).v,
                  upper_word(packing, at.source, j, upper).v);
}

std::vector<ir::Sample> pack_samples() {
  std::vector<ir::Sample> samples;
  for (const BlockFormat& format : quant::block_formats()) {
    if (quant::code_layout(format.encoding) == nullptr) continue;
    const ir::Attrs attrs = {{"encoding", std::string(format.name)}};
    samples.push_back(
        {.in = {{DType::kU8, {"n", 2 * format.block_bytes}}}, .attrs = attrs, .hi = 256});
    samples.push_back({.in = {{DType::kU8, {64, format.block_bytes}}}, .attrs = attrs, .hi = 256});
  }
  return samples;
}

// --- qmatmul_scales(w) {encoding} ---

std::vector<TensorType> scales_infer(const ir::InferArgs& args) {
  const Packing packing = packing_of(args.attrs);
  Shape shape = panel_shape(packing, args.in[0]);
  shape.insert(shape.end(), {packing.scale_rows(), kPanelColumns});
  return {{packing.scale_type(), shape}};
}

std::vector<Literal> scales_eval(const ir::EvalArgs& args) {
  const Packing packing = packing_of(args.attrs);
  const ir::ConcreteType& type = args.out[0];
  Literal result(type.dtype, type.dims);
  for_each_row(type.dims, [&](int64_t at, int64_t column, int64_t block, int64_t row) {
    const Place place = place_of(packing.format, block);
    const quant::Encoding encoding = packing.format.encoding;
    const int64_t group = place.element / packing.layout.group + row % packing.groups();
    for (int64_t j = 0; j < kPanelColumns; ++j) {
      const quant::BlockBytes source{column_bytes(args.in[0], column + j) + place.byte};
      const quant::Scales<quant::BlockBytes> scales(source);
      result.set_double(at * kPanelColumns + j, row < packing.groups()
                                                    ? scales.scale(encoding, group)
                                                    : scales.offset(encoding, group));
    }
  });
  return {std::move(result)};
}

Val scales_lower(LowerContext& ctx, const ir::Node& node, uint32_t, std::span<const Val> index) {
  kir::Builder& b = ctx.builder();
  const Packing packing = packing_of(node.attrs);
  const PlacedSource at = source_at(ctx, packing, node.operands[0], index[0], index[1], index[3]);
  const BlockSource::Index row = at.source.index(index[2]);
  const quant::Scales<BlockSource> scales(at.source);
  const quant::Encoding encoding = packing.format.encoding;
  if (packing.layout.half_scales) return at.source.load(kir::Type::kF16, (row * 2).v);
  const BlockSource::Index group = at.source.index(at.element) / packing.layout.group;
  if (!packing.layout.has_offset) return scales.scale(encoding, group + row).v;
  const Val is_scale = b.cmp(kir::Pred::kEq, index[2], b.i64(0));
  return b.select(is_scale, scales.scale(encoding, group).v, scales.offset(encoding, group).v);
}

// --- the two products ---

// Checks codes and scales against k elements and n columns: graphs hold what packed_qmatmul makes.
TensorType product_type(const ir::InferArgs& args, const TensorType& x, size_t codes) {
  const Packing packing = packing_of(args.attrs);
  const Dim& n = args.attrs.shape("n").at(0);
  const Shape panels = {panels_of(n), floor_div(x.shape.back(), Dim(kQuantBlock))};
  const auto fits = [&](const TensorType& type, DType dtype, int64_t rows) {
    return type.dtype == dtype && type.shape == Shape{panels[0], panels[1], rows, kPanelColumns};
  };
  if (!fits(args.in[codes], DType::kU32, packing.words()) ||
      !fits(args.in[codes + 1], packing.scale_type(), packing.scale_rows())) {
    throw ShapeError(fmt::format("{}: codes and scales are not those of {} columns of {} elements",
                                 args.op, n.str(), x.shape.back().str()),
                     {.label = fmt::format("{}_c1", args.op), .details = operand_types(args.in)});
  }
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.push_back(n);
  return {DType::kF32, shape};
}

std::vector<TensorType> exact_infer(const ir::InferArgs& args) {
  return {product_type(args, args.in[0], 1)};
}

std::vector<TensorType> int8_infer(const ir::InferArgs& args) {
  return {product_type(args, args.in[0], 3)};
}

// Column `column` of the packed weights, decoded.
void decode_column(const Packing& packing, const Literal& codes, const Literal& scales,
                   int64_t column, std::vector<float>& out) {
  const int64_t blocks = codes.dims()[1];
  const int64_t base = column / kPanelColumns * blocks;
  const int64_t lane = column % kPanelColumns;
  const auto word = [&](int64_t block, int64_t w) {
    return codes.as<uint32_t>()[((base + block) * packing.words() + w) * kPanelColumns + lane];
  };
  const auto scale = [&](int64_t block, int64_t row) {
    const int64_t at = ((base + block) * packing.scale_rows() + row) * kPanelColumns + lane;
    return static_cast<float>(scales.get_double(at));
  };
  for (int64_t k = 0; k < blocks * kQuantBlock; ++k) {
    const int64_t block = k / kQuantBlock;
    const int64_t i = k % kQuantBlock;
    const bool nibbles = packing.layout.code_bits < 8;
    const int64_t byte = nibbles ? i % 16 : i;
    uint32_t code = word(block, byte / 4) >> (byte % 4 * 8) & 255;
    if (nibbles) code = i < 16 ? code & 15 : code >> 4;
    if (const int bits = packing.extra_bits(); bits > 0) {
      const uint32_t upper = word(block, 4 + i / 4 / packing.sharing());
      const int64_t shift = i % 4 * 8 + bits * (i / 4 % packing.sharing());
      code |= (upper >> shift & ((1u << bits) - 1)) << 4;
    }
    const int64_t group = i / packing.layout.group;
    const float value =
        scale(block, group) * static_cast<float>(static_cast<int32_t>(code) - packing.layout.zero);
    out[static_cast<size_t>(k)] =
        packing.layout.has_offset ? value + scale(block, packing.groups() + group) : value;
  }
}

// The product of rows activation(row, k) with the packed weights.
template <class Activation>
std::vector<Literal> evaluate_product(const ir::EvalArgs& args, size_t codes,
                                      const Activation& activation) {
  const Packing packing = packing_of(args.attrs);
  Literal result(DType::kF32, args.out[0].dims);
  const int64_t k = args.in[0].dims().back();
  const int64_t columns = args.out[0].dims.back();
  const int64_t rows = columns == 0 ? 0 : result.count() / columns;
  std::vector<float> column(static_cast<size_t>(k));
  for (int64_t n = 0; n < columns; ++n) {
    decode_column(packing, args.in[codes], args.in[codes + 1], n, column);
    for (int64_t m = 0; m < rows; ++m) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += activation(m, i) * column[static_cast<size_t>(i)];
      result.as_mutable<float>()[m * columns + n] = static_cast<float>(sum);
    }
  }
  return {std::move(result)};
}

std::vector<Literal> exact_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const int64_t k = x.dims().back();
  return evaluate_product(args, 1,
                          [&](int64_t m, int64_t i) -> double { return x.as<float>()[m * k + i]; });
}

std::vector<Literal> int8_eval(const ir::EvalArgs& args) {
  const Literal& x = args.in[0];
  const int64_t k = x.dims().back();
  return evaluate_product(args, 3, [&](int64_t m, int64_t i) {
    const float step = args.in[1].as<float>()[(m * k + i) / kQuantBlock];
    return static_cast<double>(x.as<int8_t>()[m * k + i]) * step;
  });
}

}  // namespace

int64_t code_words(const quant::CodeLayout& layout) {
  return layout.code_bits == 8 ? 8 : layout.code_bits;
}

const ir::OpDef kQmatmulCodes = {
    .name = "qmatmul_codes",
    .doc = "Lays the codes of quantised weights out in panels of 32 columns.",
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"encoding", std::string(), true}},
    .infer = codes_infer,
    .eval = codes_eval,
    .lower = codes_lower,
};
TENON_OP_SAMPLES(kQmatmulCodes, pack_samples)

const ir::OpDef kQmatmulScales = {
    .name = "qmatmul_scales",
    .doc = "The scales and offsets of quantised weights, in the same panels.",
    .min_operands = 1,
    .max_operands = 1,
    .attrs = {{"encoding", std::string(), true}},
    .infer = scales_infer,
    .eval = scales_eval,
    .lower = scales_lower,
};
TENON_OP_SAMPLES(kQmatmulScales, pack_samples)

const ir::OpDef kQmatmulExact = {
    .name = "qmatmul_exact",
    .doc = "Product with weights packed by qmatmul_codes and qmatmul_scales.",
    .traits = ir::kAnchor,
    .min_operands = 3,
    .max_operands = 3,
    .attrs = {{"encoding", std::string(), true}, {"n", Shape{}, true}},
    .infer = exact_infer,
    .eval = exact_eval,
};

const ir::OpDef kQmatmulInt8 = {
    .name = "qmatmul_int8",
    .doc = "The same for activations of 8 bits with a step for each 32 and sums of groups.",
    .traits = ir::kAnchor,
    .min_operands = 5,
    .max_operands = 5,
    .attrs = {{"encoding", std::string(), true}, {"n", Shape{}, true}},
    .infer = int8_infer,
    .eval = int8_eval,
};

Value packed_qmatmul(const std::string& encoding, const Value& x, const Value& w, bool int8,
                     LocationPtr location) {
  const ir::Attrs attrs = {{"encoding", encoding}};
  const Packing packing = packing_of(attrs);
  const Value codes = ir::make(kQmatmulCodes, {w}, attrs, location);
  const Value scales = ir::make(kQmatmulScales, {w}, attrs, location);
  const ir::Attrs product = {{"encoding", encoding}, {"n", Shape{w.shape()[0]}}};
  if (!int8) return ir::make(kQmatmulExact, {x, codes, scales}, product, std::move(location));
  const ir::NodePtr rounded =
      ir::make_node(kRoundRows, {x}, {{"group", packing.layout.group}}, location);
  return ir::make(kQmatmulInt8, {{rounded, 0}, {rounded, 1}, {rounded, 2}, codes, scales}, product,
                  std::move(location));
}

}  // namespace tenon::ops
