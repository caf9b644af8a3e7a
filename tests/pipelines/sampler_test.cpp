#include "tenon/pipelines/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tenon/base/error.h"

namespace tenon::pipelines {
namespace {

constexpr float kOut = -HUGE_VALF;

std::map<int32_t, double> frequencies(SamplerOptions options, const std::vector<float>& logits,
                                      int draws = 40000) {
  Sampler sampler(options);
  std::map<int32_t, double> out;
  for (int i = 0; i < draws; ++i) out[sampler.sample(logits)] += 1.0 / draws;
  return out;
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  Sampler sampler({});
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{kOut, -5}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{0}), 0);
}

TEST(Sampler, DrawsTheSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0f), kOut, std::log(5.0f)};
  auto f = frequencies({.temperature = 1, .seed = 7}, logits);
  EXPECT_NEAR(f[0], 1.0 / 8, 0.01);
  EXPECT_NEAR(f[1], 2.0 / 8, 0.01);
  EXPECT_EQ(f.count(2), 0u);
  EXPECT_NEAR(f[3], 5.0 / 8, 0.01);
  f = frequencies({.temperature = 0.5f, .seed = 7}, logits);  // squares the weights
  EXPECT_NEAR(f[0], 1.0 / 30, 0.01);
  EXPECT_NEAR(f[3], 25.0 / 30, 0.01);
}

TEST(Sampler, TopKTopPMinP) {
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(3.0f),
                                     std::log(2.0f)};
  auto f = frequencies({.temperature = 1, .top_k = 2}, logits);
  EXPECT_EQ(f.size(), 2u);
  EXPECT_NEAR(f[1], 4.0 / 7, 0.01);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 1}, logits).size(), 1u);
  EXPECT_EQ(frequencies({.temperature = 1, .top_k = 1000000}, logits).size(), 4u);
  f = frequencies({.temperature = 1, .top_p = 0.5f}, logits);  // 0.4 is not enough, 0.7 is
  EXPECT_EQ(f.size(), 2u);
  EXPECT_NEAR(f[2], 3.0 / 7, 0.01);
  EXPECT_EQ(frequencies({.temperature = 1, .top_p = 1e-6f}, logits).size(), 1u);
  f = frequencies({.temperature = 1, .min_p = 0.6f}, logits);  // 3 of 4 stays, 2 of 4 goes
  EXPECT_EQ(f.size(), 2u);
  EXPECT_EQ(frequencies({.temperature = 1, .min_p = 1.0f}, {1, 1, 0}).size(), 2u);
  // Among equals top-k keeps the lowest ids.
  f = frequencies({.temperature = 1, .top_k = 2}, {1, 1, 1});
  EXPECT_EQ(f.count(2), 0u);
}

TEST(Sampler, RepetitionPenalty) {
  Sampler sampler({.repetition_penalty = 2, .repetition_window = 2});
  const std::vector<float> logits = {4, 3, -1, -1.5f};
  EXPECT_EQ(sampler.sample(logits), 0);
  sampler.accept(0);
  EXPECT_EQ(sampler.sample(logits), 1);
  sampler.accept(1);
  EXPECT_EQ(sampler.sample(logits), 0);  // 2 against 1.5
  sampler.accept(1);
  sampler.accept(1);
  EXPECT_EQ(sampler.sample(logits), 0);
  sampler.accept(99);  // outside the vocabulary: ignored
  sampler.reset();
  EXPECT_EQ(sampler.sample(logits), 0);
  sampler.accept(0);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -1.5f}), 1);  // -2 against -1.5
}

TEST(Sampler, SeedsDecideAndResetRepeats) {
  const std::vector<float> logits(100, 0.0f);
  auto run = [&](Sampler& sampler) {
    std::vector<int32_t> out;
    for (int i = 0; i < 50; ++i) out.push_back(sampler.sample(logits));
    return out;
  };
  Sampler a({.temperature = 1, .seed = 1}), b({.temperature = 1, .seed = 1}),
      c({.temperature = 1, .seed = 2});
  auto first = run(a);
  EXPECT_EQ(first, run(b));
  EXPECT_NE(first, run(c));
  EXPECT_NE(first, run(a));
  a.reset();
  EXPECT_EQ(first, run(a));
}

TEST(Sampler, RefusesWhatItCannotUse) {
  Sampler greedy({}), random({.temperature = 1});
  for (Sampler* sampler : {&greedy, &random}) {
    EXPECT_THROW(sampler->sample({}), ValueError);
    EXPECT_THROW(sampler->sample(std::vector<float>{0, std::nanf("")}), ValueError);
    EXPECT_THROW(sampler->sample(std::vector<float>{0, HUGE_VALF}), ValueError);
    EXPECT_THROW(sampler->sample(std::vector<float>{kOut, kOut}), ValueError);
    EXPECT_EQ(sampler->sample(std::vector<float>{kOut, 1, kOut}), 1);
  }
  for (SamplerOptions bad : {SamplerOptions{.temperature = -1},
                             {.temperature = std::nanf("")},
                             {.temperature = HUGE_VALF},
                             {.top_k = -1},
                             {.top_p = 0},
                             {.top_p = 1.5f},
                             {.top_p = std::nanf("")},
                             {.min_p = -0.1f},
                             {.min_p = 2},
                             {.repetition_penalty = 0},
                             {.repetition_window = -2}}) {
    EXPECT_THROW(Sampler{bad}, ValueError);
  }
  try {
    Sampler({.top_p = 0});
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(),
                 "sampler: top_p is 0, expected a number over 0 and at most 1 [sampler_option]");
  }
}

TEST(Sampler, ExtremeTemperatures) {
  const std::vector<float> logits = {3e38f, -3e38f, 2.9e38f};
  EXPECT_EQ(frequencies({.temperature = 1e-30f}, logits, 100).size(), 1u);
  EXPECT_EQ(frequencies({.temperature = 3e38f}, {1, 2, 3}, 1000).size(), 3u);
}

// The known answers of the generator's authors.
TEST(Sampler, PhiloxKnownAnswers) {
  auto expect = [](PhiloxBlock b, uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3) {
    EXPECT_EQ(b.words[0], x0);
    EXPECT_EQ(b.words[1], x1);
    EXPECT_EQ(b.words[2], x2);
    EXPECT_EQ(b.words[3], x3);
  };
  expect(philox(0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  expect(philox(~0ull, ~0ull, ~0ull), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
}

}  // namespace
}  // namespace tenon::pipelines
