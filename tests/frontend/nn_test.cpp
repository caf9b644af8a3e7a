#include "tenon/frontend/nn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/frontend/compile.h"
#include "tenon/frontend/functions.h"
#include "tenon/frontend/random.h"
#include "tests/refusal.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& wanted) {
  const Floats values = got.to_vector<float>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-6) << i;
}

TEST(Networks, KnownValues) {
  const Tensor x = tensor({{1.0f, 3.0f}});
  expect_near(mean(x), {2});
  expect_near(var(x), {1});
  expect_near(softmax(x), {0.119202922f, 0.880797078f});
  expect_near(layer_norm(x), {-0.999995f, 0.999995f});
  expect_near(rms_norm(tensor({3.0f, 4.0f}), tensor({1.0f, 2.0f}), 0.0),
              {3 / std::sqrt(12.5f), 8 / std::sqrt(12.5f)});
  expect_near(logsumexp(x), {3.12692801f});
  expect_near(attention(ones({1, 1, 2}), ones({1, 3, 2}), arange(3, f32).reshape({1, 3, 1})), {1});
}

// Attention of bf16 is that of the same numbers in f32, rounded at the end: the order of sums may
// turn a last bit here and there.
TEST(Networks, AttentionOfHalvesIsThatOfFloats) {
  const Tensor q = random::normal(random::key(1), {2, 4, 70, 40}).cast(bf16);
  const Tensor k = random::normal(random::key(2), {2, 2, 330, 40}).cast(bf16);
  const Tensor v = random::normal(random::key(3), {2, 2, 330, 24}).cast(bf16);
  const Tensor mask = random::normal(random::key(4), {70, 330});
  for (const AttentionOptions& options :
       {AttentionOptions{}, AttentionOptions{.causal = true},
        AttentionOptions{.causal = true, .window = 50}, AttentionOptions{.scale = -0.5},
        AttentionOptions{.mask = mask.cast(bf16)}, AttentionOptions{.mask = mask, .window = 90},
        AttentionOptions{.mask = mask > 0.0f, .causal = true},
        AttentionOptions{.mask = random::normal(random::key(5), {4, 1, 330})},
        AttentionOptions{.mask = random::normal(random::key(6), {2, 1, 1, 330}) > 0.5f}}) {
    const auto f = [options](const Tensor& a, const Tensor& b, const Tensor& c) {
      return attention(a, b, c, options);
    };
    const Tensor halves = compile(f)(q, k, v);
    const Tensor floats = compile(f)(q.cast(f32), k.cast(f32), v.cast(f32));
    const Floats got = halves.cast(f32).to_vector<float>();
    const Floats wanted = floats.cast(bf16).cast(f32).to_vector<float>();
    ASSERT_EQ(got.size(), wanted.size());
    size_t differ = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 0x1p-7f * std::abs(wanted[i]) + 1e-5f) << i;
      differ += got[i] == wanted[i] ? 0 : 1;
    }
    EXPECT_LT(differ, got.size() / 200);
  }
}

TEST(Networks, EagerAndCompiledAgree) {
  const Tensor x = random::normal(random::key(3), {5, 33});
  const auto f = [](const Tensor& y) { return softmax(layer_norm(y) * 2) + gelu(y); };
  const Floats eager = f(x).to_vector<float>();
  const Floats compiled = compile(f)(x).to_vector<float>();
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(eager[i], compiled[i], 2e-6) << i;
}

TEST(Networks, LargeEagerWorkIsCompiled) {
  const Tensor x = ones({1024, 1030});
  const Tensor y = x * 2 + 1;
  const Tensor z = y.sum();
  EXPECT_EQ(z.item<float>(), 3.0f * 1024 * 1030);
  EXPECT_EQ(y.to_vector<float>()[1024 * 1030 - 1], 3);
  EXPECT_EQ(matmul(x, ones({1030, 8})).to_vector<float>()[0], 1030);
}

TEST(Random, DrawsAreFunctionsOfTheirKey) {
  const Tensor key = random::key(7);
  EXPECT_EQ(random::uniform(key, {8}).to_vector<float>(),
            random::uniform(key, {8}).to_vector<float>());
  const auto draw = compile([](const Tensor& k) { return random::uniform(k, {8}); });
  EXPECT_EQ(draw(key).to_vector<float>(), random::uniform(key, {8}).to_vector<float>());
  random::seed(1);
  const Floats first = random::normal({8}).to_vector<float>();
  EXPECT_NE(random::normal({8}).to_vector<float>(), first);
  random::seed(1);
  EXPECT_EQ(random::normal({8}).to_vector<float>(), first);
}

TEST(Random, TracingNeedsAKey) {
  const std::string text = refusal([] {
    compile([](const Tensor& x) { return x + random::normal({2}); })(tensor({1.0f, 2.0f}));
  });
  EXPECT_NE(text.find("TraceError: normal: a draw without a key would be the same at every call "
                      "[random_trace]"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenon
