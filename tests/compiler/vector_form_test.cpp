// Every elementwise op on floats is code for whole vectors on every level: no call, and no
// arithmetic on single numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tenon/base/error.h"
#include "tenon/codegen/codegen.h"
#include "tenon/ops/registry.h"
#include "tests/ops/single_op_kernel.h"

namespace tenon::compiler {
namespace {

using codegen::Isa;

// More than the lanes of any level, so that no elements are left for one at a time.
constexpr int64_t kMultiple = 256;

std::string assembly(const kir::Kernel& kernel, Isa isa) {
  std::string text;
  const kir::Kernel* one = &kernel;
  codegen::compile({&one, 1}, {.isa = isa, .dump_asm = &text});
  return text;
}

// The first line of `text` that calls something or computes with a single float; empty: none.
std::string scalar_line(const std::string& text, Isa isa) {
  static const std::regex x86(
      R"(\t(call|v?(add|sub|mul|div|sqrt|min|max|rndscale|round|scalef|fn?m(add|sub)\d*|cvt\w*2)s[sd]|v?cvt\w*s[sd]2)\w*\t.*)");
  static const std::regex arm(
      R"(\t(bl|blr)\t.*|\t(f(add|sub|mul|div|sqrt|min|max|madd|msub|rint|cvt)|[su]cvtf)\w*\t[sd]\d.*)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, isa == Isa::kNeon ? arm : x86)) return line;
  }
  return "";
}

// Of one dtype; null where the op does not take it.
ir::NodePtr node_of(const ir::OpDef& op, DType dtype) {
  const ir::TensorType type{dtype, {Dim(4 * kMultiple)}};
  std::vector<ir::Value> in;
  for (int k = 0; k < op.min_operands; ++k) in.push_back(ir::make_parameter(type, "x"));
  try {
    return ir::make(op, in).node;
  } catch (const TypeError&) {
    return nullptr;
  }
}

class VectorForm : public testing::TestWithParam<const ir::OpDef*> {};

TEST_P(VectorForm, HasNoCallAndNoSingleNumbers) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const ir::NodePtr node = node_of(*GetParam(), dtype);
    if (node == nullptr) continue;
    const kir::Kernel kernel =
        ops::single_op_kernel(node, {.vector = true, .interleave = 1, .multiple = kMultiple});
    for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
      EXPECT_EQ(scalar_line(assembly(kernel, isa), isa), "") << name(dtype) << " " << name(isa);
    }
  }
}

std::vector<const ir::OpDef*> float_ops() {
  ops::register_all();
  std::vector<const ir::OpDef*> found;
  for (const ir::OpDef* op : ops::elementwise_ops()) {
    if (node_of(*op, DType::kF32) != nullptr) found.push_back(op);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Elementwise, VectorForm, testing::ValuesIn(float_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(VectorForm, SingleNumbersAreSeen) {
  EXPECT_NE(scalar_line("\tvfmadd213sd\t%xmm0, %xmm1, %xmm2\n", Isa::kAvx2), "");
  EXPECT_NE(scalar_line("\tcallq\t*%rax\n", Isa::kBaseline), "");
  EXPECT_NE(scalar_line("\tcvttss2si\t%xmm0, %rax\n", Isa::kBaseline), "");
  EXPECT_NE(scalar_line("\tfmadd\td0, d1, d2, d3\n", Isa::kNeon), "");
  EXPECT_EQ(scalar_line("\tvfmadd213ps\t%ymm0, %ymm1, %ymm2\n", Isa::kAvx2), "");
  EXPECT_EQ(scalar_line("\tfmla\tv0.4s, v1.4s, v2.4s\n", Isa::kNeon), "");
}

}  // namespace
}  // namespace tenon::compiler
