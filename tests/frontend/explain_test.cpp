// Whole texts of explain(). What depends on the machine is masked: times, the level and its steps,
// threads. ctest sets two threads, whose scratch memory is part of the sizes.
#include <gtest/gtest.h>

#include <regex>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/nn.h"
#include "tenon/frontend/subgraph.h"

namespace tenon {
namespace {

std::string masked(const std::string& text) {
  const std::pair<const char*, const char*> masks[] = {
      {R"(compiled in [0-9.]+ ms \(trace [0-9.]+, passes [0-9.]+, emit [0-9.]+\))",
       "compiled in T"},
      {R"((\n  trace|, [a-z_]+) [0-9.]+ ms)", "$1 T"},
      {R"((kernels?), [0-9]+ from the cache)", "$1"},
      {R"(by [0-9]+( and [0-9]+)* \()", "by S ("},
      {R"(\((avx512|avx2|baseline|neon)\))", "(ISA)"},
      {R"((up to )?[0-9]+ threads?\n)", "$1N threads\n"},
  };
  std::string out = text;
  for (const auto& [pattern, with] : masks)
    out = std::regex_replace(out, std::regex(pattern), with);
  return out;
}

constexpr const char* kPhases =
    "phases\n"
    "  trace T, canonicalize T, simplify T, fold_constants T, propagate_shapes T, cse T, "
    "inline_bodies T, split_reductions T, split_attention T, split_sorts T, pack_matmul T, "
    "lift_externals T, tidy T, split_setup T, "
    "lower T, emit T\n";

Tensor gelu_by_hand(const Tensor& x) { return x * (1.0f + erf(x * 0.70710678f)) * 0.5f; }

TEST(Explain, OneKernel) {
  const auto program = compile(gelu_by_hand, {.name = "gelu"})(TensorLayout(f32, {32, 1000, 4096}));
  EXPECT_EQ(masked(program.explain()),
            std::string("gelu(f32[32, 1000, 4096]) → f32[32, 1000, 4096]     1 kernel, 0 B "
                        "scratch, compiled in T\n"
                        "  k0  mul·erf·add·mul·mul  reads 524.3 MB, writes 524.3 MB  "
                        "i < 131072000 by S (ISA), N threads\n"
                        "groups\n"
                        "  @gelu loops mul·erf·add·mul·mul → f32[32, 1000, 4096]\n"
                        "not fused\n"
                        "  nothing\n"
                        "memory: 0 B in one arena\n") +
                kPhases);
}

// Sizes are expressions of the names; after a call memory and threads are those of its sizes.
TEST(Explain, NamedSizes) {
  const auto program = compile(
      [](const Tensor& x) {
        const Tensor c = cumsum(x, 1);
        return cumsum(exp(c), 0) + c;
      },
      {.name = "step", .argument_names = {"x"}})(TensorLayout(f32, {"n", 64}));
  const auto whole = [](const std::string& threads, const std::string& memory) {
    return fmt::format(
               "step(x: f32[\"n\", 64]) → f32[\"n\", 64]     3 kernels, (256*n + 24832) B "
               "scratch, compiled in T\n"
               "  k0  cumsum      reads 256*n B, writes 256*n B  i < (n + 15)//16, inner loops by "
               "S "
               "(ISA), {0}\n"
               "  k1  exp·cumsum  reads 256*n B, writes 256*n B  i < 1, inner loops by S (ISA), "
               "{0}\n"
               "  k2  add         reads 512*n B, writes 256*n B  i < 64*n by S (ISA), {0}\n"
               "groups\n"
               "  @step scan cumsum → f32[\"n\", 64]\n"
               "  @step scan exp·cumsum → f32[\"n\", 64]\n"
               "  @step loops add → f32[\"n\", 64]\n"
               "not fused\n"
               "  @step cumsum → add: f32[\"n\", 64] in memory, cumsum is a kernel of its own\n"
               "  @step cumsum → exp, add: f32[\"n\", 64] in memory, cumsum is a kernel of its "
               "own\n",
               threads) +
           memory + kPhases;
  };
  EXPECT_EQ(masked(program.explain()),
            whole("up to N threads",
                  "memory: offsets are known when sizes are, at a call\n"
                  "  @step m2  f32[\"n\", 64]            256*n B  steps 0 to 2\n"
                  "  @step k0  scratch of each thread  12.4 KB  step 0\n"));
  program(zeros({3, 64}));
  EXPECT_EQ(masked(program.explain()),
            whole("N threads",
                  "memory, for n = 3: 13.2 KB in one arena\n"
                  "  @step m2  f32[\"n\", 64]            768 B at 0      steps 0 to 2\n"
                  "  @step k0  scratch of each thread  12.4 KB at 768  step 0\n"));
}

TEST(Explain, SharedBodies) {
  const auto program = compile(
      [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 3; ++i) {
          y = as_subgraph(
              [](const Tensor& z) { return softmax(cumsum(z, -1), -1) + sum(z * z, -1, true); },
              {.name = "block"})(y);
        }
        return y;
      },
      {.name = "net"})(TensorLayout(f32, {8, 32}));
  EXPECT_EQ(
      masked(program.explain()),
      std::string(
          "net(f32[8, 32]) → f32[8, 32]     2 kernels, 15.5 KB scratch, compiled in T\n"
          "  @net\n"
          "    call  @block\n"
          "    call  @block\n"
          "    call  @block\n"
          "  @block, run 3 times a call\n"
          "    k0  cumsum                                      reads 1.0 KB, writes 1.0 KB  i < 1, "
          "inner loops by S (ISA), N threads\n"
          "    k1  mul·sum·max·sub·exp·sum·reciprocal·mul·add  reads 2.0 KB, writes 1.0 KB  i < 8, "
          "inner loops by S (ISA), N threads\n"
          "groups\n"
          "  @block scan cumsum → f32[8, 32]\n"
          "  @block loops mul·sum·max·sub·exp·sum·reciprocal·mul·add → f32[8, 32]\n"
          "not fused\n"
          "  @block cumsum → max, sub: f32[8, 32] in memory, cumsum is a kernel of its own\n"
          "  @net call → call: f32[8, 32] in memory, a shared body has kernels of its own (2 "
          "times)\n"
          "memory: 15.5 KB in one arena\n"
          "  @net m2  f32[8, 32]  1.0 KB at 0     steps 0 to 1\n"
          "  @net m3  f32[8, 32]  1.0 KB at 1024  steps 1 to 2\n"
          "  @block m2  f32[8, 32]              1.0 KB at 0      steps 0 to 1\n"
          "  @block k0  scratch of each thread  12.4 KB at 1024  step 0\n"
          "  @block k1  scratch of each thread  128 B at 1024    step 1\n") +
          kPhases);
}

// Products: what depends on threads and caches is left out of the comparison.
TEST(Explain, WhyNeighboursDidNotFuse) {
  const auto program = compile(
      [](const Tensor& x, const Tensor& w) {
        const Tensor y = exp(x);
        const Tensor z = matmul(y, w);
        return std::tuple(y, z, sum(z));
      },
      {.name = "f"})(TensorLayout(f32, {64, 64}), TensorLayout(f32, {64, 192}));
  const std::string text = program.explain();
  const size_t begin = text.find("not fused\n");
  EXPECT_EQ(
      text.substr(begin, text.find("memory:") - begin),
      "not fused\n"
      "  @f matmul_packed → sum: f32[64, 192] in memory, no reader alone takes the product's "
      "elements once each\n"
      "  @f matmul_pack → matmul_packed: f32[6, 64, 32] in memory, matmul_packed reads whole "
      "operands\n"
      "  @f exp → matmul_packed: f32[64, 64] in memory, matmul_packed reads whole operands\n");
}

TEST(Explain, OfACompiledFunction) {
  const auto fast = compile(gelu_by_hand, {.name = "gelu"});
  EXPECT_EQ(fast.explain(), "gelu: not called yet\n");
  fast(zeros({4}));
  EXPECT_TRUE(fast.explain().starts_with("gelu(f32[4]) → f32[4]     1 kernel"));
}

}  // namespace
}  // namespace tenon
