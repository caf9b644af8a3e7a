#include "tenon/passes/pack_matmul.h"

#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "tenon/ir/op_def.h"
#include "tenon/ir/rewrite.h"
#include "tenon/ops/ops.h"
#include "tenon/ops/packed_qmatmul.h"
#include "tenon/ops/quantized.h"
#include "tenon/passes/access.h"
#include "tenon/quant/codes.h"

namespace tenon::passes {
namespace {

// Fewer rows than this do not pay for packing an operand at every call: it is read where it stands.
constexpr int64_t kRowsWorthPacking = 64;
// Fewer rows of bf16 are multiplied as f32, where the operand stands: there are no words in it.
constexpr int64_t kRowsWorthWords = 16;
// A block of rows can pack the words that it needs. No more rows than these are one block.
constexpr int64_t kRowsOfOneBlock = 64;
// The same for an operand whose columns stand apart in memory: without packing each row of the
// product gathers it anew.
constexpr int64_t kRowsWorthGathering = 2;
// A product with fewer columns leaves most of a panel empty.
constexpr int64_t kColumnsWorthPacking = 16;
// Rows of an operand with few columns are read where they stand: a panel is not much denser.
constexpr int64_t kFewColumns = 64;
// So is an operand of so many bytes, which the first cache holds, for no more rows than these.
constexpr int64_t kFewBytes = 32768;
constexpr int64_t kRowsOfFewBytes = 512;
// Fewer columns leave most lanes of a tile empty.
constexpr int64_t kColumnsWorthTiles = 2;
// The same for an operand that is packed once: a panel of one column is 32 times its size.
constexpr int64_t kColumnsWorthPackingOnce = 4;
// An operand of fewer columns than this is transposed once instead: lanes over a common dimension
// of at least so many rows have more to do than lanes over columns.
constexpr int64_t kColumnsWorthLanes = 8;
constexpr int64_t kDepthWorthTransposing = 256;
// A shorter common dimension leaves most of a row of words empty.
constexpr int64_t kDepthWorthWords = 16;

// The most rows and columns of a product that is split over its common dimension, the most such
// products, and the part that is worth a task.
constexpr int64_t kFewResults = 128;
constexpr int64_t kFewBatches = 4;
constexpr int64_t kDepthOfPart = 4096;

// Whether values are computed from constants and external data alone.
class ConstantAnalysis {
 public:
  bool is_constant(const ir::Value& value) {
    const ir::Node* node = value.node.get();
    auto known = known_.find(node);
    if (known != known_.end()) return known->second;
    bool constant = !node->op->is(ir::kStructural) || node->op == &ir::kConstantExternal;
    for (const ir::Value& operand : node->operands) {
      constant = constant && is_constant(operand);
    }
    return known_[node] = constant;
  }

 private:
  std::unordered_map<const ir::Node*, bool> known_;
};

// kWordsInPlace: words that the product's own kernel packs.
enum class Right : uint8_t { kPacked, kInPlace, kWordsInPlace, kElementwise };

// Rows of the product that share the right operand; nothing where their number is not known.
std::optional<int64_t> known_rows(const ir::Value& a, const ir::Value& b) {
  if (b.type().rank() > 2) return a.shape()[a.type().rank() - 2].static_value();
  Dim rows = 1;
  for (size_t i = 0; i + 1 < a.type().rank(); ++i) rows = rows * a.shape()[i];
  return rows.static_value();
}

// Whether an operand whose columns stand apart in memory has too few rows or columns to be packed.
bool few_of_transposed(std::optional<int64_t> rows, std::optional<int64_t> columns) {
  return (rows && *rows < kRowsWorthGathering) || (columns && *columns < kColumnsWorthPacking);
}

// How the product reads its right operand.
Right choose_right(const ir::Node& node, bool words, bool constant) {
  const ir::TensorType& a = node.operands[0].type();
  const ir::TensorType& b = node.operands[1].type();
  if (b.rank() < 2 || a.rank() < 1) return Right::kElementwise;
  // Batched right operands need the left one to have as many dimensions.
  if (b.rank() > 2 && a.rank() != b.rank()) return Right::kElementwise;
  const std::optional<int64_t> columns = b.shape.back().static_value();
  if (constant) {
    return columns && *columns < kColumnsWorthPackingOnce ? Right::kElementwise : Right::kPacked;
  }
  const std::optional<int64_t> rows = known_rows(node.operands[0], node.operands[1]);
  const bool transposed = is_transposed(node.operands[1]);
  if (transposed) return few_of_transposed(rows, columns) ? Right::kElementwise : Right::kPacked;
  if (words) {
    const bool few_rows = rows && *rows < kRowsWorthWords;
    const bool few_columns = columns && *columns < kColumnsWorthPacking;
    if (is_float(b.dtype) && (few_rows || few_columns)) {
      return !columns || *columns >= kColumnsWorthTiles ? Right::kInPlace : Right::kElementwise;
    }
    if (few_columns) return Right::kElementwise;
    return rows && *rows <= kRowsOfOneBlock ? Right::kWordsInPlace : Right::kPacked;
  }
  if (columns && *columns < kColumnsWorthTiles) return Right::kElementwise;
  const Dim bytes =
      b.shape[b.rank() - 2] * b.shape.back() * Dim(static_cast<int64_t>(size_of(b.dtype)));
  const bool small = !is_half(b.dtype) && rows && *rows <= kRowsOfFewBytes && bytes.is_static() &&
                     bytes.value() <= kFewBytes;
  const bool in_place =
      small || (rows && *rows < kRowsWorthPacking) || (columns && *columns <= kFewColumns);
  return in_place ? Right::kInPlace : Right::kPacked;
}

// Parts of a long common dimension whose sums are added up in the end, so that threads share a
// product of few results. Their number follows from the shapes alone, at run time where the common
// dimension is known only then.
Dim choose_parts(const ir::Value& a, const ir::Value& b) {
  const size_t rank = b.type().rank();
  const Dim& depth = b.shape()[rank - 2];
  const std::optional<int64_t> columns = b.shape()[rank - 1].static_value();
  const std::optional<int64_t> rows = known_rows(a, b);
  Dim batches = 1;
  for (size_t i = 0; i + 2 < rank; ++i) batches = batches * dim_max(a.shape()[i], b.shape()[i]);
  if (!columns || !rows || depth.upper_bound() < 2 * kDepthOfPart) return 1;
  if (!batches.is_static() || batches.value() > kFewBatches) return 1;
  if (*rows > kFewResults || *columns > kFewResults) return 1;
  return dim_max(floor_div(depth, Dim(kDepthOfPart)), Dim(1));
}

// Whether a constant operand is transposed once, when external data are bound, since its columns
// are few and long.
bool is_worth_transposing(const ir::Value& b) {
  if (b.type().rank() != 2 || b.node->op == &ir::kConstant) return false;
  const std::optional<int64_t> columns = b.shape()[1].static_value();
  const std::optional<int64_t> depth = b.shape()[0].static_value();
  return columns && *columns < kColumnsWorthLanes && depth && *depth >= kDepthWorthTransposing;
}

// A product with one column, with a transposed operand of few rows or columns, or with a constant
// of few columns, as the sum of products of elements, which reads rows at the speed of memory.
std::optional<ir::Value> as_sum(const ir::Node& node, std::span<const ir::Value> operands,
                                bool constant) {
  const ir::Value& a = operands[0];
  const ir::Value& b = operands[1];
  const size_t rank = b.type().rank();
  if (rank < 2 || a.type().rank() < 1 || !is_float(node.types[0].dtype)) return std::nullopt;
  const bool is_column = rank == 2 && b.shape()[1] == Dim(1);
  const bool is_few =
      constant ? is_worth_transposing(b)
               : is_transposed(b) && (rank == 2 || a.type().rank() == rank) &&
                     few_of_transposed(known_rows(a, b), b.shape().back().static_value());
  if (!is_column && !is_few) return std::nullopt;
  const DType type = node.types[0].dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto wide = [&](const ir::Value& x) {
    return x.dtype() == type ? x : ops::cast(x, type, node.location);
  };
  ir::Value left = wide(a);
  ir::Value right = wide(b);
  if (is_column) {
    right = ops::reshape(right, Shape{b.shape()[0]}, node.location);
  } else {
    // [… m, 1, k] times [… 1, n, k].
    Shape rows = a.shape();
    rows.insert(rows.end() - 1, Dim(1));
    left = ops::reshape(left, rows, node.location);
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[rank - 2], order[rank - 1]);
    right = ops::transpose(right, order, node.location);
    Shape columns = right.shape();
    columns.insert(columns.end() - 2, Dim(1));
    right = ops::reshape(right, columns, node.location);
  }
  const ir::Value products = ops::mul(left, right, node.location);
  const ir::Value sums = ops::sum(products, std::vector<int64_t>{-1}, false, node.location);
  const ir::Value narrow = sums.dtype() == node.types[0].dtype
                               ? sums
                               : ops::cast(sums, node.types[0].dtype, node.location);
  return ops::reshape(narrow, node.types[0].shape, node.location);
}

// qmatmul over packed codes; without codes, over the decoded weights, which are packed where they
// are constant.
ir::Value without_blocks(const ir::Node& node, std::span<const ir::Value> operands, bool constant) {
  const std::string& encoding = node.attrs.s("encoding");
  if (quant::code_layout(ops::format_of(node).encoding) != nullptr) {
    return ops::packed_qmatmul(encoding, operands[0], operands[1], node.attrs.b("int8"),
                               node.location);
  }
  ir::Value decoded = ops::dequantize(encoding, operands[1], node.location);
  // Panels of the encoding's own dtype: what was decoded from it is exact in it.
  const quant::Encoding kind = ops::format_of(node).encoding;
  if (kind == quant::Encoding::kF16) decoded = ops::cast(decoded, DType::kF16, node.location);
  if (kind == quant::Encoding::kBF16) decoded = ops::cast(decoded, DType::kBF16, node.location);
  const ir::Value right = ops::transpose(decoded, std::nullopt, node.location);
  if (!constant) return ops::matmul(operands[0], right, node.location);
  return ops::matmul_packed(operands[0], ops::matmul_pack(right, false, node.location),
                            node.types[0].shape.back(), right.dtype(), node.location);
}

// Products of bytes in i32: what stands under casts of both operands.
std::optional<std::array<ir::Value, 2>> bytes_under_casts(std::span<const ir::Value> operands) {
  std::array<ir::Value, 2> bytes;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Node& node = *operands[i].node;
    if (operands[i].dtype() != DType::kI32 || node.op->name != "cast") return std::nullopt;
    bytes[i] = node.operands[0];
  }
  const DType left = bytes[0].dtype();
  const bool fits = left == DType::kI8 || left == DType::kU8;
  return fits && bytes[1].dtype() == DType::kI8 ? std::optional(bytes) : std::nullopt;
}

// Dot products of bytes take unsigned ones on the left, so a · b = (a + 128) · b - 128 · Σ b,
// exactly in wrapping i32. This is a + 128,
ir::Value unsigned_left(const ir::Value& a, const ir::LocationPtr& location) {
  const ir::Value more = ops::scalar_int(DType::kU8, 128, location);
  return ops::add(ops::cast(a, DType::kU8, location), more, location);
}

// and this 128 · Σ b for each column: the product of a row of 128s, once where b is constant.
ir::Value shift_of_columns(const ir::Value& b, const ir::Value& packed, const Dim& columns,
                           const ir::LocationPtr& location) {
  const size_t rank = b.type().rank();
  Shape row(rank == 2 ? 1 : rank, Dim(1));
  row.back() = b.shape()[rank - 2];
  const ir::Value more = ops::scalar_int(DType::kU8, 128, location);
  return ops::matmul_packed(ops::broadcast_to(more, row, location), packed, columns, b.dtype(),
                            location);
}

// Products of bf16 are made of dot products of words, unless most of the words would be padding.
bool suits_words(const ir::Value& a, const ir::Value& b) {
  if (a.dtype() != DType::kBF16 || b.dtype() != DType::kBF16) return false;
  const std::optional<int64_t> depth = a.shape().back().static_value();
  return !depth || *depth >= kDepthWorthWords;
}

}  // namespace

ir::GraphPtr pack_matmul(const ir::GraphPtr& graph) {
  const ir::OpDef* matmul = ir::find_op("matmul");
  auto analysis = std::make_shared<ConstantAnalysis>();
  return ir::rewrite(
      graph,
      [=](const ir::Node& node,
          std::span<const ir::Value> operands) -> std::optional<std::vector<ir::Value>> {
        if (node.op == &ops::op::qmatmul) {
          return {{without_blocks(node, operands, analysis->is_constant(node.operands[1]))}};
        }
        if (node.op != matmul) return std::nullopt;
        const bool constant = analysis->is_constant(node.operands[1]);
        if (std::optional<ir::Value> sum = as_sum(node, operands, constant)) return {{*sum}};
        const auto bytes = bytes_under_casts(operands);
        if (!bytes && !is_float(node.types[0].dtype)) return std::nullopt;
        const ir::Value& a = bytes ? (*bytes)[0] : operands[0];
        const ir::Value& b = bytes ? (*bytes)[1] : operands[1];
        bool words = bytes || suits_words(a, b);
        const Right right = choose_right(node, words, constant);
        if (right == Right::kElementwise) return std::nullopt;
        words = words && right != Right::kInPlace;
        ir::Value packed = ops::matmul_pack(b, words, node.location, right != Right::kPacked);
        const Dim parts = choose_parts(a, b);
        const Dim& columns = node.types[0].shape.back();
        const bool is_signed = a.dtype() == DType::kI8;
        ir::Value product = ops::matmul_packed(is_signed ? unsigned_left(a, node.location) : a,
                                               packed, columns, b.dtype(), node.location, parts);
        if (parts != Dim(1)) {
          product = ops::sum(product, std::vector<int64_t>{0}, false, node.location);
        }
        if (product.dtype() != node.types[0].dtype) {
          product = ops::cast(product, node.types[0].dtype, node.location);
        }
        if (!is_signed) return {{product}};
        const ir::Value shift = shift_of_columns(b, packed, columns, node.location);
        return {{ops::sub(product, shift, node.location)}};
      });
}

}  // namespace tenon::passes
