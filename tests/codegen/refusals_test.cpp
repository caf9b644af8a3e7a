// Kernels that break the rules are refused with the kernel and the value named.
#include <gtest/gtest.h>

#include "kernel_harness.h"
#include "tenon/base/error.h"

namespace tenon::codegen {
namespace {

using kir::Builder;
using kir::Kernel;
using kir::Op;
using kir::Type;
using kir::Val;

std::string refusal(const Kernel& kernel) {
  const Kernel* one = &kernel;
  try {
    compile({&one, 1}, {.isa = Isa::kBaseline});
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Refusals, BoundsThatDifferBetweenLanes) {
  Kernel kernel;
  kernel.name = "ragged";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kI64, false);
  uint32_t out = b.add_buffer("out", DType::kI64, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](Val i) { b.loop(b.i64(0), b.load(in, i), {}, [&](Val k) { b.store(out, i, k); }); });
  EXPECT_NE(refusal(kernel), "");
}

TEST(Refusals, ConditionsThatDifferBetweenLanes) {
  Kernel kernel;
  kernel.name = "branch";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kBool, false);
  uint32_t out = b.add_buffer("out", DType::kI64, true);
  b.loop(b.begin(), b.end(), {.parallel = true, .vector = true},
         [&](Val i) { b.if_then(b.load(in, i), [&] { b.store(out, i, i); }); });
  EXPECT_NE(refusal(kernel), "");
}

TEST(Refusals, ScratchAtAnUnknownPlace) {
  Kernel kernel;
  kernel.name = "lost";
  Builder b(kernel);
  uint32_t scratch = b.add_scratch("s", DType::kF32, 4);
  b.store(scratch, b.i64(0), b.constant_float(Type::kF32, 1));
  kernel.buffers[scratch].offset = Dim("elsewhere");
  EXPECT_NE(refusal(kernel).find("elsewhere"), std::string::npos) << refusal(kernel);
}

TEST(Refusals, CarriedValuesWithoutCombine) {
  Kernel kernel;
  kernel.name = "sum";
  Builder b(kernel);
  uint32_t in = b.add_buffer("in", DType::kF32, false);
  uint32_t out = b.add_buffer("out", DType::kF32, true);
  kir::CarriedSpec carried{b.constant_float(Type::kF32, 0)};
  auto sum = b.loop(
      b.begin(), b.end(), {.vector = true}, {&carried, 1},
      [&](Val i, std::span<const Val> c) { return std::vector<Val>{b.add(c[0], b.load(in, i))}; });
  b.store(out, b.i64(0), sum[0]);
  EXPECT_NE(refusal(kernel), "");
}

}  // namespace
}  // namespace tenon::codegen
