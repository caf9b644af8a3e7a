// A small model with random weights: batches, dtypes, saved programs.
#include <gtest/gtest.h>

#include <filesystem>

#include "tenon/base/half.h"
#include "tenon/pipelines/llama/model.h"
#include "tenon/runtime/cpu.h"

namespace tenon::pipelines {
namespace {

LlamaConfig small_config() {
  LlamaConfig config;
  config.blocks = 2;
  config.width = 40;
  config.feed_forward = 72;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_size = 10;
  config.vocabulary = 53;
  config.context = 100;
  config.tied_head = true;
  return config;
}

// Numbers in [-0.5, 0.5), the same on every run.
class Numbers {
 public:
  std::vector<float> next(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      values.push_back(static_cast<float>(state_ >> 40) / 16777216.0f - 0.5f);
    }
    return values;
  }

 private:
  uint64_t state_ = 7;
};

Tensor bf16_of(const std::vector<float>& values, const std::vector<int64_t>& dims) {
  runtime::Array array = runtime::Array::empty(bf16, dims);
  auto* out = static_cast<uint16_t*>(array.mutable_data());
  for (size_t i = 0; i < values.size(); ++i) out[i] = bf16_from_float(values[i]);
  return Tensor(std::move(array));
}

Tensor f32_of(const std::vector<float>& values, const std::vector<int64_t>& dims) {
  runtime::Array array = runtime::Array::empty(f32, dims);
  std::copy(values.begin(), values.end(), static_cast<float*>(array.mutable_data()));
  return Tensor(std::move(array));
}

// `dtype` of the matrices; `rounded`: through bf16 first.
Weights small_weights(const LlamaConfig& c, DType dtype, bool rounded) {
  Numbers numbers;
  Weights weights;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
    std::vector<float> values = numbers.next(rows * columns);
    if (rounded) {
      for (float& value : values) value = bf16_to_float(bf16_from_float(value));
    }
    weights[name] =
        dtype == bf16 ? bf16_of(values, {rows, columns}) : f32_of(values, {rows, columns});
  };
  const auto vector = [&](const std::string& name) {
    std::vector<float> values = numbers.next(c.width);
    for (float& value : values) value += 1.0f;
    weights[name] = f32_of(values, {c.width});
  };
  matrix("token_embd.weight", c.vocabulary, c.width);
  if (!c.tied_head) matrix("output.weight", c.vocabulary, c.width);
  vector("output_norm.weight");
  for (int64_t i = 0; i < c.blocks; ++i) {
    const std::string block = fmt::format("blk.{}.", i);
    vector(block + "attn_norm.weight");
    vector(block + "ffn_norm.weight");
    matrix(block + "attn_q.weight", c.heads * c.head_size, c.width);
    matrix(block + "attn_k.weight", c.kv_heads * c.head_size, c.width);
    matrix(block + "attn_v.weight", c.kv_heads * c.head_size, c.width);
    matrix(block + "attn_output.weight", c.width, c.heads * c.head_size);
    matrix(block + "ffn_gate.weight", c.feed_forward, c.width);
    matrix(block + "ffn_up.weight", c.feed_forward, c.width);
    matrix(block + "ffn_down.weight", c.width, c.feed_forward);
  }
  return weights;
}

std::shared_ptr<LlamaModel> small_model(DType dtype = f32, bool rounded = false) {
  const LlamaConfig config = small_config();
  return LlamaModel::compile(config, dtype, small_weights(config, dtype, rounded));
}

using Tokens = std::vector<int32_t>;

void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "logit " << i;
}

TEST(LlamaModel, BatchEqualsSingleRuns) {
  const auto model = small_model();
  const std::vector<Tokens> texts = {{1, 50, 3, 17, 9}, {33, 2, 2, 41, 0}, {52, 12, 13, 8, 8}};
  LlamaCache together = model->new_cache(3);
  std::vector<LlamaCache> alone;
  for (size_t i = 0; i < texts.size(); ++i) alone.push_back(model->new_cache());
  Tokens all;
  for (const Tokens& text : texts) all.insert(all.end(), text.begin(), text.end());
  // The prompt, then one token each, past the room that a cache begins with.
  for (int32_t step = 0; step < 70; ++step) {
    const std::vector<float> batch = model->step(all, together);
    std::vector<float> single;
    const size_t each = all.size() / texts.size();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto own = model->step(std::span<const int32_t>(all).subspan(i * each, each), alone[i]);
      single.insert(single.end(), own.begin(), own.end());
    }
    expect_near(batch, single, 2e-4);
    all = {step % 53, (step * 7 + 1) % 53, (step * 5 + 30) % 53};
  }
  EXPECT_EQ(together.tokens, 74);
  EXPECT_GE(together.room, 74);
}

TEST(LlamaModel, PromptInPiecesEqualsOnePrompt) {
  const auto model = small_model();
  const Tokens tokens = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  LlamaCache whole = model->new_cache();
  LlamaCache pieces = model->new_cache();
  const std::span<const int32_t> all(tokens);
  model->step(all.first(4), pieces);
  model->step(all.subspan(4, 1), pieces);
  expect_near(model->step(all, whole), model->step(all.subspan(5), pieces), 2e-4);
}

TEST(LlamaModel, Bf16WeightsGiveWhatTheirValuesGive) {
  const auto narrow = small_model(bf16);
  const auto wide = small_model(f32, /*rounded=*/true);
  LlamaCache a = narrow->new_cache();
  LlamaCache b = wide->new_cache();
  const Tokens prompt = {4, 40, 14, 41};
  expect_near(narrow->step(prompt, a), wide->step(prompt, b), 2e-4);
  const int32_t next = 30;
  expect_near(narrow->step({&next, 1}, a), wide->step({&next, 1}, b), 2e-4);
}

TEST(LlamaModel, SavedProgramsGiveTheSameBits) {
  LlamaConfig config = small_config();
  config.tied_head = false;
  const std::string path = (std::filesystem::path(testing::TempDir()) / "llama.tenon").string();
  LlamaModel::save(config, f32, path, {runtime::cpu_level()});
  const Weights weights = small_weights(config, f32, false);
  const auto compiled = LlamaModel::compile(config, f32, weights);
  const auto loaded = LlamaModel::load_saved(path, config, weights);
  std::filesystem::remove(path);
  LlamaCache a = compiled->new_cache(2);
  LlamaCache b = loaded->new_cache(2);
  const Tokens prompt = {4, 40, 14, 41, 9, 1};
  EXPECT_EQ(compiled->step(prompt, a), loaded->step(prompt, b));
  const Tokens next = {11, 12};
  EXPECT_EQ(compiled->step(next, a), loaded->step(next, b));
}

TEST(LlamaModel, RefusesBatchesThatDoNotFit) {
  const auto model = small_model();
  EXPECT_THROW(model->new_cache(0), ValueError);
  LlamaCache cache = model->new_cache(2);
  const Tokens three = {1, 2, 3};
  try {
    model->step(three, cache);
    FAIL() << "three tokens for two sequences";
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string(error.what()),
              "llama: 3 tokens are not the same number for each of 2 sequences");
  }
  const Tokens many(202, 1);
  EXPECT_THROW(model->step(many, cache), ValueError);
  EXPECT_EQ(cache.tokens, 0);
}

}  // namespace
}  // namespace tenon::pipelines
