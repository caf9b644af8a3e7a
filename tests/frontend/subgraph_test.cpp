#include "tenon/frontend/subgraph.h"

#include <gtest/gtest.h>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;
const TensorLayout kOne(f32, {1});

template <class F>
Floats run(F fn, const Weights& weights = {}, bool allow_subgraphs = true) {
  CompileOptions options;
  options.weights = weights;
  options.allow_subgraphs = allow_subgraphs;
  return compile(fn, options)(kOne)(tensor({1.0f})).template to_vector<float>();
}

int64_t bodies(const StagedProgram& staged) {
  return static_cast<int64_t>(ir::reachable_graphs(staged.graph()).size()) - 1;
}

Tensor twice(const Tensor& x) { return x * 2; }

// Checks 5 and 6.
TEST(Subgraph, OneBodyThreeCalls) {
  const auto f = [](const Tensor& x) {
    const auto block = as_subgraph(twice, {.name = "block"});
    return block(block(block(x)));
  };
  const auto staged = stage(f)(TensorLayout(f32, {4}));
  EXPECT_EQ(bodies(staged), 1);
  EXPECT_EQ(staged.count("call"), 3);
  EXPECT_NE(staged.str().find("tn.graph @block("), std::string::npos) << staged.str();
  staged.verify();
  EXPECT_EQ(staged.compile()(ones({4})).to_vector<float>(), Floats(4, 8.0f));
  const auto inlined = stage(f, {.allow_subgraphs = false})(TensorLayout(f32, {4}));
  EXPECT_EQ(inlined.count("call"), 0);
  EXPECT_EQ(inlined.compile()(ones({4})).to_vector<float>(), Floats(4, 8.0f));
}

Tensor scaled(const Tensor& x) { return x * constant_external("w", kOne, true); }

Tensor two_layers(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 2; ++i) {
    y = as_subgraph(scaled, {.prefix = fmt::format("layers.{}.", i)})(y);
  }
  return y;
}

// Check 7.
TEST(Subgraph, PrefixesResolveRelativeNames) {
  const Weights weights{{"layers.0.w", tensor({2.0f})}, {"layers.1.w", tensor({10.0f})}};
  EXPECT_EQ(run(two_layers, weights), Floats{20});
  EXPECT_EQ(run(two_layers, weights, false), Floats{20});
  const auto staged = stage(two_layers)(kOne);
  EXPECT_EQ(bodies(staged), 1);
  EXPECT_NE(staged.str().find("tn.constant_external \"w\" relative"), std::string::npos);
  EXPECT_NE(staged.str().find("{prefix = \"layers.1.\"}"), std::string::npos);

  const auto unbound = compile(two_layers, {.name = "net"})(kOne);
  EXPECT_EQ(refusal([&] { unbound(tensor({1.0f})); }),
            "KeyError: net: missing weights: layers.0.w, layers.1.w [weight_missing]");
}

TEST(Subgraph, WeightsAreChecked) {
  const auto refused = [](const Weights& weights) {
    return refusal([&] { run(two_layers, weights); });
  };
  const Tensor two = tensor({2.0f});
  EXPECT_EQ(refused({{"layers.0.w", two}}),
            "KeyError: two_layers: missing weights: layers.1.w [weight_missing]");
  EXPECT_EQ(refused({{"layers.0.w", two}, {"layers.1.w", tensor({2})}}),
            "ValueError: two_layers: weight layers.1.w: expected f32[1], got i32[1] [weight_type]");
  EXPECT_EQ(
      refused({{"layers.0.w", two}, {"layers.1.w", tensor({{2.0f}})}}),
      "ValueError: two_layers: weight layers.1.w: expected f32[1], got f32[1, 1] [weight_type]");
  EXPECT_EQ(refused({{"layers.0.w", two}, {"layers.1.w", two}, {"layers.1.v", two}}),
            "KeyError: two_layers: nothing reads the weight layers.1.v [weight_unused]\n"
            "  hint: did you mean layers.1.w?");
}

// Check 8.
TEST(Subgraph, AbsoluteNamesAreShared) {
  const auto f = [](const Tensor& x) {
    const auto body = [](const Tensor& y) { return y * constant_external("shared.w", kOne); };
    return as_subgraph(body, {.prefix = "b."})(as_subgraph(body, {.prefix = "a."})(x));
  };
  EXPECT_EQ(run(f, {{"shared.w", tensor({3.0f})}}), Floats{9});
}

// Row 9.4: prefixes of nested bodies compose.
TEST(Subgraph, NestedPrefixesCompose) {
  const auto f = [](const Tensor& x) {
    const auto outer = [](const Tensor& y) {
      return as_subgraph(scaled, {.prefix = "b."})(as_subgraph(scaled, {.prefix = "a."})(y));
    };
    return as_subgraph(outer, {.prefix = "L0."})(x);
  };
  const Weights weights{{"L0.a.w", tensor({2.0f})}, {"L0.b.w", tensor({10.0f})}};
  EXPECT_EQ(run(f, weights), Floats{20});
  EXPECT_EQ(run(f, weights, false), Floats{20});
}

// Check 9 and rows 9.1 to 9.3: bodies are told apart by what they compute.
TEST(Subgraph, BodiesAreComparedByTheirText) {
  int traces = 0;
  const auto f = [&traces](const Tensor& x) {
    Tensor y = x;
    for (float k : {2.0f, 3.0f, 2.0f}) {
      y = as_subgraph([k, &traces](const Tensor& z) {
        ++traces;
        return z * k;
      })(y);
    }
    return y;
  };
  const auto staged = stage(f)(kOne);
  EXPECT_EQ(traces, 3);
  EXPECT_EQ(bodies(staged), 2);
  EXPECT_EQ(run(f), Floats{12});
}

TEST(Subgraph, AKeyIsTracedOnce) {
  int traces = 0;
  const auto f = [&traces](const Tensor& x) {
    const auto body = [&traces](const Tensor& y, int k) {
      ++traces;
      return y * k;
    };
    const auto block = as_subgraph(body, {.name = "block", .key = "mine"});
    return block(block(block(x, 2), 2), 3);  // a static argument splits bodies
  };
  EXPECT_EQ(run(f), Floats{12});
  EXPECT_EQ(traces, 2);
}

// Row 9.2: a body that reads what changes between calls.
TEST(Subgraph, ChangingStateIsSeen) {
  float k = 2;
  const auto f = [&k](const Tensor& x) {
    const auto block = as_subgraph([&k](const Tensor& y) { return y * k; });
    k = 2;
    const Tensor y = block(x);
    k = 3;
    return block(y);
  };
  EXPECT_EQ(run(f), Floats{6});
}

TEST(Subgraph, NamesAreFree) {
  const auto f = [](const Tensor& x) {
    const auto a = as_subgraph([](const Tensor& y) { return y + 1; }, {.name = "f"});
    const auto b = as_subgraph([](const Tensor& y) { return y + 2; }, {.name = "f"});
    return b(a(x));
  };
  const auto staged = stage(f, {.name = "f"})(kOne);
  EXPECT_NE(staged.str().find("@f_1("), std::string::npos) << staged.str();
  EXPECT_NE(staged.str().find("@f_2("), std::string::npos);
  staged.verify();
}

// Check 10.
TEST(Subgraph, NeedsACapture) {
  EXPECT_EQ(refusal([] { as_subgraph(twice, {.name = "block"})(tensor({1.0f})); }),
            "TypeError: as_subgraph(block) needs a capture: compile or stage [subgraph_c1]\n"
            "  hint: call the function itself to run eagerly");
  EXPECT_NE(refusal([] { constant_external("w", kOne); }).find("needs a capture"),
            std::string::npos);
}

TEST(Subgraph, IsTheFunctionWhenCompilingIsOff) {
  const DisableCompile off;
  EXPECT_EQ(as_subgraph(twice)(tensor({2.0f})).to_vector<float>(), Floats{4});
}

// Row 9.28: a tensor of the caller that a body reads is passed by itself.
TEST(Subgraph, ClosingOverTheCallersTensors) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x + 1;
    const auto outer = [&](const Tensor& z) {
      return as_subgraph([&](const Tensor& v) { return v * y + x; })(z) + y;
    };
    return as_subgraph(outer)(x);
  };
  EXPECT_EQ(run(f), Floats{5});
  stage(f)(kOne).verify();
}

// Check 17: one pool, three calls of one body.
TEST(Subgraph, BuffersThreadThroughCalls) {
  const auto f = [](Tensor pool, const Tensor& x) {
    const auto block = as_subgraph(
        [](Tensor p, const Tensor& y, const Tensor& slot) {
          p[slot] = y;
          return y * 2;
        },
        {.name = "block"});
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = block(pool, y, tensor(i));
    return y;
  };
  const auto staged = stage(f)(BufferLayout(f32, {3, 2}), TensorLayout(f32, {2}));
  EXPECT_EQ(bodies(staged), 1);
  EXPECT_EQ(staged.count("call"), 3);
  staged.verify();
  Tensor pool = zeros({3, 2});
  const Tensor out = staged.compile()(pool, tensor({1.0f, 2.0f}));
  EXPECT_EQ(out.to_vector<float>(), (Floats{8, 16}));
  EXPECT_EQ(pool.to_vector<float>(), (Floats{1, 2, 2, 4, 4, 8}));
}

// Row 9.24: a body that failed leaves nothing behind.
TEST(Subgraph, FailedBodiesAreRemoved) {
  const auto f = [](const Tensor& x) {
    try {
      as_subgraph([](const Tensor& y) -> Tensor {
        const Tensor z = y * 2;
        throw ValueError("no");
      })(x);
    } catch (const ValueError&) {
    }
    return x + 1;
  };
  const auto staged = stage(f)(kOne);
  EXPECT_EQ(bodies(staged), 0);
  EXPECT_EQ(run(f), Floats{2});
}

TEST(Subgraph, OneNameHasOneType) {
  const std::string text = refusal([] {
    stage([](const Tensor& x) {
      return x * constant_external("w", kOne) * constant_external("w", TensorLayout(f32, {2}));
    })(kOne);
  });
  EXPECT_NE(text.find("ValueError: constant_external: \"w\" is declared as "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenon
