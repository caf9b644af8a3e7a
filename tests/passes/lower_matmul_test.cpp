#include "tenon/passes/lower_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tenon/base/half.h"
#include "tenon/ir/op_def.h"
#include "tenon/kir/evaluate.h"
#include "tenon/ops/packed_matmul.h"

namespace tenon::passes {
namespace {

using kir::Val;

// Every value is materialised in a buffer.
class BufferContext : public ops::LowerContext {
 public:
  explicit BufferContext(kir::Kernel& kernel) : builder_(kernel) {}
  kir::Builder& builder() override { return builder_; }
  void bind(const ir::Value& value, uint32_t buffer) { buffers_[value.node.get()] = buffer; }
  Val element(const ir::Value& value, std::span<const Val> index) override {
    return builder_.load(buffers_.at(value.node.get()),
                         ops::flatten_index(builder_, value.shape(), index));
  }
  Val element_if(const ir::Value& value, std::span<const Val> index, Val predicate) override {
    return builder_.load_if(buffers_.at(value.node.get()),
                            ops::flatten_index(builder_, value.shape(), index), predicate,
                            builder_.constant_float(kir::type_of(value.dtype()), 0));
  }

 private:
  kir::Builder builder_;
  std::map<const ir::Node*, uint32_t> buffers_;
};

struct Case {
  Shape a;
  Shape b;
  std::map<std::string, int64_t> sizes = {};
  DType a_type = DType::kF32;
  DType b_type = DType::kF32;
  bool scratch_partial = false;
  bool words = false;
  Dim parts = 1;
};

std::vector<int64_t> sizes_of(const Shape& shape, const Dim::Lookup& lookup) {
  std::vector<int64_t> dims;
  for (const Dim& dim : shape) dims.push_back(dim.eval(lookup));
  return dims;
}

Literal random_literal(DType dtype, std::vector<int64_t> dims, std::mt19937& random) {
  Literal literal(dtype, std::move(dims));
  std::uniform_int_distribution<int> small(-4, 4);  // sums of products stay exact
  for (int64_t i = 0; i < literal.count(); ++i) literal.set_double(i, small(random));
  return literal;
}

void run_case(const Case& c, bool wide, bool beside_wide = false) {
  std::mt19937 random(7);
  Dim::Lookup lookup = [&](std::string_view name) -> std::optional<int64_t> {
    if (name == kDimThreads) return 2;
    if (name == kDimL2) return 1 << 20;
    auto it = c.sizes.find(std::string(name));
    return it == c.sizes.end() ? std::nullopt : std::optional<int64_t>(it->second);
  };
  ir::Value a = ir::make_parameter({c.a_type, c.a}, "a");
  ir::Value b = ir::make_parameter({c.b_type, c.b}, "b");
  ir::Value pack = ops::matmul_pack(b, c.words);
  ir::Value packed = ir::make_parameter(pack.type(), "packed");
  ir::Value product = ops::matmul_packed(a, packed, c.b.back(), c.b_type, nullptr, c.parts);

  Literal a_data = random_literal(c.a_type, sizes_of(c.a, lookup), random);
  Literal b_data = random_literal(c.b_type, sizes_of(c.b, lookup), random);
  ir::ConcreteType packed_type{packed.dtype(), sizes_of(packed.shape(), lookup)};
  ir::Attrs pack_attrs{{"words", c.words}};
  Literal packed_data = ops::kMatmulPack.eval({pack_attrs, {&b_data, 1}, {&packed_type, 1}})[0];
  ir::ConcreteType type{product.dtype(), sizes_of(product.shape(), lookup)};
  ir::Attrs attrs{{"n", Shape{type.dims.back()}}, {"right", c.b_type}, {"parts", Shape{c.parts}}};
  std::vector<Literal> operands = {a_data, packed_data};
  Literal expected = ops::kMatmulPacked.eval({attrs, operands, {&type, 1}})[0];

  kir::Kernel kernel;
  kernel.name = "gemm";
  BufferContext context(kernel);
  kir::Builder& builder = context.builder();
  context.bind(a, builder.add_buffer("a", c.a_type, false));
  context.bind(packed, builder.add_buffer("packed", packed.dtype(), false));
  uint32_t out = builder.add_buffer("out", product.dtype(), true);
  MatmulEmission emission{*product.node, context, nullptr,    std::nullopt, 1,
                          std::nullopt,  wide,    beside_wide};
  if (!c.scratch_partial && (product.dtype() == DType::kF32 || product.dtype() == DType::kF64))
    emission.partial_buffer = out;
  emission.finish = [&](std::span<const Val> index, Val value, Val inside) {
    Val flat = ops::flatten_index(builder, product.shape(), index);
    if (inside != nullptr) {
      builder.store_if(out, flat, value, inside);
    } else {
      builder.store(out, flat, value);
    }
  };
  emit_matmul(emission);
  ASSERT_NO_THROW(kir::verify(kernel)) << kir::print(kernel);

  Literal result(product.dtype(), type.dims);
  for (int64_t i = 0; i < result.count(); ++i) result.set_double(i, NAN);
  void* buffers[] = {const_cast<std::byte*>(a_data.data()),
                     const_cast<std::byte*>(packed_data.data()), result.mutable_data()};
  std::vector<int64_t> dims;
  for (const Dim& dim : kernel.dims) dims.push_back(dim.eval(lookup));
  std::vector<std::byte> scratch(static_cast<size_t>(kernel.scratch_bytes.eval(lookup)));
  int64_t status = 0;
  kir::evaluate(kernel, {buffers, dims.data(), scratch.data(), &status}, 0,
                kernel.grid.eval(lookup));
  for (int64_t i = 0; i < result.count(); ++i) {
    ASSERT_EQ(result.get_double(i), expected.get_double(i)) << "element " << i << " wide " << wide;
  }
}

class LowerMatmul : public ::testing::TestWithParam<int> {};

const Case kCases[] = {
    {{1, 7}, {7, 40}},
    {{3, 5}, {5, 32}},
    {{14, 33}, {33, 64}},
    {{29, 16}, {16, 33}},
    {{16, 20}, {20, 100}},
    {{2, 3, 8}, {8, 50}},
    {{6}, {6, 10}},
    {{0, 4}, {4, 8}},
    {{4, 0}, {0, 8}},
    {{4, 3}, {3, 0}},
    {{2, 5, 9}, {2, 9, 35}},
    {{1, 5, 9}, {2, 9, 35}},
    {{2, 5, 9}, {1, 9, 35}},
    {{"m", 9}, {9, 35}, {{"m", 1}}},
    {{"m", 9}, {9, 35}, {{"m", 27}}},
    {{"m", "k"}, {"k", "n"}, {{"m", 17}, {"k", 1500}, {"n", 65}}},
    {{"m", "k"}, {"k", "n"}, {{"m", 3}, {"k", 1}, {"n", 1}}},
    {{17, 3100}, {3100, 40}},
    {{17, 3100}, {3100, 40}, {}, DType::kF32, DType::kF32, true},
    {{47, 3000}, {3000, 33}},
    {{47, 1500}, {1500, 33}, {}, DType::kF64, DType::kF64},
    {{15, 8}, {8, 32}, {}, DType::kBF16, DType::kBF16},
    {{15, 1100}, {1100, 32}, {}, DType::kF16, DType::kF16},
    {{5, 8}, {8, 32}, {}, DType::kF32, DType::kBF16},
    {{15, 12}, {12, 48}, {}, DType::kF64, DType::kF64},
    {{3, 500}, {500, 40}, {}, DType::kF32, DType::kF32, false, false, 3},
    {{17, 640}, {640, 33}, {}, DType::kF16, DType::kF16, false, false, 5},
    {{2, 5, 70}, {2, 70, 9}, {}, DType::kF64, DType::kF64, false, false, 4},
    {{"m", "k"}, {"k", 35}, {{"m", 5}, {"k", 2700}}, DType::kF32, DType::kF32, true, false, 2},
    {{5, "k"},
     {"k", 9},
     {{"k", 200}},
     DType::kF32,
     DType::kF32,
     false,
     false,
     dim_max(Dim("k") / 64, 1)},
    {{5, "k"},
     {"k", 9},
     {{"k", 0}},
     DType::kF32,
     DType::kF32,
     false,
     false,
     dim_max(Dim("k") / 64, 1)},
    {{5, "k"},
     {"k", 9},
     {{"k", 200}},
     DType::kU8,
     DType::kI8,
     false,
     true,
     dim_max(Dim("k") / 64, 1)},
    {{1, 40}, {40, 70}, {}, DType::kBF16, DType::kBF16, false, true},
    {{2, 37, 33}, {33, 32}, {}, DType::kBF16, DType::kBF16, false, true},
    {{2, 33, 65}, {2, 65, 40}, {}, DType::kU8, DType::kI8, false, true},
    {{70, 1101}, {1101, 35}, {}, DType::kBF16, DType::kBF16, false, true},
    {{34, 1030}, {1030, 64}, {}, DType::kU8, DType::kI8, false, true},
    {{40, 9000}, {9000, 35}, {}, DType::kU8, DType::kI8, false, true},
    {{"m", "k"},
     {"k", "n"},
     {{"m", 95}, {"k", 2900}, {"n", 33}},
     DType::kBF16,
     DType::kBF16,
     false,
     true},
    {{"m", 32}, {32, 64}, {{"m", 0}}, DType::kBF16, DType::kBF16, false, true},
    {{"m", "k"}, {"k", 64}, {{"m", 3}, {"k", 0}}, DType::kU8, DType::kI8, false, true},
    {{3, "k"}, {"k", 64}, {{"k", 0}}, DType::kU8, DType::kI8, false, true},
    {{5, 500}, {500, 40}, {}, DType::kBF16, DType::kBF16, false, true, 3},
    {{37, 1000}, {1000, 33}, {}, DType::kU8, DType::kI8, false, true, 4},
    {{2, 40, 2500}, {2, 2500, 9}, {}, DType::kBF16, DType::kBF16, false, true, 2},
    {{70, 130}, {130, 40}, {}, DType::kU8, DType::kI8, false, true, 5},
    {{"m", "k"}, {"k", 35}, {{"m", 33}, {"k", 9100}}, DType::kU8, DType::kI8, false, true, 2},
};

TEST_P(LowerMatmul, Wide) { run_case(kCases[GetParam()], true); }
TEST_P(LowerMatmul, Narrow) { run_case(kCases[GetParam()], false); }
TEST_P(LowerMatmul, NarrowBesideWide) { run_case(kCases[GetParam()], false, true); }
INSTANTIATE_TEST_SUITE_P(Cases, LowerMatmul,
                         ::testing::Range(0, static_cast<int>(std::size(kCases))));

}  // namespace
}  // namespace tenon::passes
