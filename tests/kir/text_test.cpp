#include <gtest/gtest.h>

#include "tenon/base/error.h"
#include "tenon/kir/evaluate.h"
#include "tenon/kir/kernel.h"

namespace tenon::kir {
namespace {

// Every form of the text.
constexpr const char* kEverything =
    R"(kernel @all (x: f32[], idx: i64[], h: bf16[], out: f32[] out, s: f32["n"] scratch "0") {
  grid "n"
  cost "8", "20"
  scratch "64*n"
  origins mul erf
  dims "n", "2*n"
  table t0 : i32 = 0x1 0xffffffff
  %0 = add "2*n", 3 : i64
  for i in parallel vector begin..end interleave 2 multiple 8 ahead 64 quarters 1..3 {
    %1 = load x[i] : f32
    %2 = load idx[i] : i64
    %3 = cmp slt %2, "n" : i64
    %4 = load x[%2] if %3 else -0.0 : f32
    %5 = muladd %1, 1.5, %4 : f32
    %6 = cmp flt %5, inf : f32
    %7 = select %6, %5, 1e-30 : f32
    %8 = load h[i] : bf16
    %9 = fext %8 -> f32
    %10 = itrunc %2 -> i32
    %11 = and %10, 1 : i32
    %12 = table t0[%11] : i32
    %13 = stof %12 -> f32
    %14 = any %6
    %15 = zext %14 -> i64
    %17 = for j in rare 0..%15 carry (%16 = %7 : f32) {
      %18 = add %16, %13 : f32
      next %18
    }
    %21, %22 = for k in vector 0..%0 step 1 carry (%19 = 0.0 : f32 add, %20 = %9 : f32 fmax) {
      next %20, %19
    }
    %23 = fext %17 -> f64
    %24 = residual %23, 2.5, -1.0 : f64
    %25 = ftrunc %24 -> f32
    %26 = dot4us %11, %12, %10 : i32
    %27 = dot2bf16 %25, %11, %12 : f32
    prefetch x[%2]
    prefetch far x[%2]
    store s[0], %21
    store streaming out[i], %25
    store out[i], %22 if %3
    check %3, 7
    if true {
      store out[0], 1.0
    }
  }
  paneldot bf16 out[%0] rows 3 stride 32, h[%0] stride 40 step 16, h[0] stride 32, 16, true
  paneldot bf16 out[%0] rows 3 stride 32, h[%0] stride 16 step 512, h[0] stride 32, 16, true next %0
  paneldot bf16 out[%0] rows 3 stride 32, h[%0] stride 40 step 16, h[0] stride 96 terms 3 step 32, 16, true
  transpose streaming out[%0] stride 16, x[0] stride %0, 3, %0
}
)";

TEST(KernelText, ReadsWhatItPrints) {
  Kernel kernel = parse(kEverything);
  std::string text = print(kernel);
  std::string expected = kEverything;
  expected.replace(expected.find(" step 1"), 7, "");
  EXPECT_EQ(text, expected);
  EXPECT_EQ(print(parse(text)), text);
  EXPECT_EQ(print(kernel.clone()), text);
}

TEST(KernelText, CanonicalTextLeavesNamesOut) {
  std::string other = kEverything;
  auto rename = [&](std::string_view from, std::string_view to) {
    for (size_t at; (at = other.find(from)) != std::string::npos;)
      other.replace(at, from.size(), to);
  };
  rename("@all", "@more");
  rename("x[", "input[");
  rename("x:", "input:");
  rename("\"n\"", "\"batch\"");
  rename("2*n", "2*batch");
  rename("64*n", "64*batch");
  rename("mul erf", "sub exp");
  Kernel a = parse(kEverything), b = parse(other);
  EXPECT_NE(print(a), print(b));
  EXPECT_EQ(print(a, true), print(b, true));
}

TEST(KernelText, NamesLineAndCauseOfBadText) {
  auto message = [](std::string_view body) -> std::string {
    try {
      parse(fmt::format("kernel @k (x: f32[], y: f32[] out) {{\n{}}}\n", body));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("%0 = load z[0] : f32\n"), "kernel text: line 2: z is not a buffer");
  EXPECT_EQ(message("%0 = blur 0.0 : f32\n"), "kernel text: line 2: blur is not an instruction");
  EXPECT_EQ(message("store y[0], %3\n"), "kernel text: line 3: %3 is not defined here");
  EXPECT_EQ(message("for i in 0..4 carry (%0 = 0.0 : f32) { next %0 }\n"),
            "kernel text: line 2: a loop defines one value for each carried value");
  EXPECT_NE(message("store x[0], 1.0\n").find("stores to a buffer marked as written"),
            std::string::npos);
  EXPECT_NE(message("%0 = cmp slt 1.0, 2.0 : f32\n").find("predicate of its operands' class"),
            std::string::npos);
  EXPECT_NE(message("%0 = ftos 1.0:f32 -> i1\n").find("cannot convert"), std::string::npos);
  EXPECT_NE(message("for i in 0..4 { for j in parallel begin..end { } }\n").find("outermost"),
            std::string::npos);
}

TEST(Verify, FindsUsesOutsideTheirBlock) {
  Kernel k = parse(R"(kernel @k (y: f32[] out) {
  for i in 0..4 {
    %0 = stof i -> f32
    store y[i], %0
  }
})");
  Inst* loop = nullptr;
  for (Inst* inst : k.body.insts)
    if (inst->op == Op::kFor) loop = inst;
  Inst* store = k.make(Op::kStore, Type::kVoid);
  store->args = loop->loop->body.insts[1]->args;
  k.body.insts.push_back(store);
  EXPECT_THROW(verify(k), InternalError);
}

TEST(Evaluate, RunsLoopsReductionsAndChecks) {
  Kernel k = parse(R"(kernel @k (x: f32[], y: f32[] out, z: bool[] out) {
  dims "n"
  for i in parallel begin..end {
    %0 = mul i, "n" : i64
    %2 = for j in vector 0.."n" carry (%1 = 0.0 : f32 add) {
      %3 = add %0, j : i64
      %4 = load x[%3] : f32
      %5 = add %1, %4 : f32
      next %5
    }
    %6 = cmp fge %2, 0.0 : f32
    check %6, 9
    store z[i], %6
    store y[i], %2
  }
})");
  float x[] = {1, 2, 3, 4, 5, -16};
  float y[2] = {};
  bool z[2] = {};
  void* buffers[] = {x, y, z};
  int64_t n = 3, status = 0;
  evaluate(k, {buffers, &n, nullptr, &status}, 0, 1);
  EXPECT_EQ(y[0], 6);
  EXPECT_TRUE(z[0]);
  EXPECT_EQ(status, 0);
  evaluate(k, {buffers, &n, nullptr, &status}, 1, 2);
  EXPECT_EQ(y[1], -7);
  EXPECT_FALSE(z[1]);
  EXPECT_EQ(status, 9);
}

TEST(Evaluate, LeavesMemoryBehindAFalsePredicateAlone) {
  Kernel k = parse(R"(kernel @k (x: f32[], y: f32[] out) {
  for i in vector begin..end {
    %0 = cmp slt i, 2 : i64
    %1 = load x[i] if %0 else 7.0 : f32
    store y[0], %1 if %0
    store y[i], %1
  }
})");
  float y[4] = {};
  float x[2] = {1, 2};
  void* buffers[] = {x, y};
  int64_t status = 0;
  evaluate(k, {buffers, nullptr, nullptr, &status}, 0, 4);
  EXPECT_EQ(y[3], 7);
  EXPECT_EQ(y[0], 2);
}

}  // namespace
}  // namespace tenon::kir
