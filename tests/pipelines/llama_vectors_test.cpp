// The demo's model against reference logits and greedy tokens (tests/data/llm-vectors).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tenon/base/sanitizer.h"
#include "tenon/pipelines/generate.h"
#include "tenon/runtime/allocator.h"
#include "tests/test_data.h"

namespace tenon::pipelines {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// How far logits may be from the reference, and by what less a step may go either way.
struct Bounds {
  double logit;
  double margin;
};
// Two correct float32 implementations differ by up to 7.8e-5 on these paths.
constexpr Bounds kFloat = {2e-4, 1e-3};
// Activations of 8 bits: the furthest logit on these paths is 1.2 away.
constexpr Bounds kEightBits = {1.5, 1.5};

Json read_vectors(const std::string& file) {
  const std::string folder = data_path("TENON_LLM_VECTORS", "tests/data/llm-vectors");
  std::ifstream in(folder + "/" + file);
  if (!in) throw std::runtime_error(folder + "/" + file + " is missing");
  return Json::parse(in);
}

TEST(LlamaVectors, EveryTensorDecodesToTheReference) {
  auto file = formats::GgufFile::open(model_path());
  const Json vectors = read_vectors("dequant.json");
  const Json& tensors = vectors.at("tensors");
  ASSERT_EQ(tensors.size(), file->tensors().size());
  const Weights weights = decode_weights(*file, f32);
  for (const Json& expected : tensors) {
    const auto name = expected.at("name").get<std::string>();
    const runtime::Array& data = weights.at(name).array();
    const auto* values = data.as<float>();
    double sum = 0;
    double largest = 0;
    for (int64_t i = 0; i < data.count(); ++i) {
      sum += values[i];
      largest = std::max(largest, std::fabs(static_cast<double>(values[i])));
    }
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(values[i], expected.at("first4").at(i).get<float>()) << name << " element " << i;
    }
    EXPECT_EQ(largest, expected.at("absmax").get<double>()) << name;
    EXPECT_NEAR(sum, expected.at("sum_f64").get<double>(), 1e-6 * (1 + std::fabs(sum))) << name;
  }
}

std::shared_ptr<LlamaModel> load_quantised(Activations activations) {
  const auto file = formats::GgufFile::open(model_path());
  return LlamaModel::load(*file, MatrixForm::of_file(*file, activations));
}

class LlamaModelVectors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = load_quantised(Activations::kExact); }
  static void TearDownTestSuite() { model_.reset(); }
  static std::shared_ptr<LlamaModel> model_;
};
std::shared_ptr<LlamaModel> LlamaModelVectors::model_;

// Follows the reference's tokens, so that one undecided step does not hide the later ones.
void follow(const LlamaModel& model, const Json& prompt, const Bounds& bounds) {
  LlamaCache cache = model.new_cache();
  std::vector<float> logits =
      model.step(prompt.at("prompt_ids").get<std::vector<int32_t>>(), cache);
  const Json& expected = prompt.at("last_prompt_logits16");
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits[i], expected.at(i).get<double>(), bounds.logit) << "logit " << i;
  }
  const Json& steps = prompt.at("f32_steps");
  for (size_t i = 0; i < steps.size(); ++i) {
    const Json& step = steps.at(i);
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const auto id = step.at("id").get<int32_t>();
    if (step.at("margin").get<double>() > bounds.margin) {
      ASSERT_EQ(best, id) << "step " << i;
    }
    for (const Json& top : step.at("top5")) {
      EXPECT_NEAR(logits[top.at(0).get<size_t>()], top.at(1).get<double>(), bounds.logit)
          << "step " << i;
    }
    if (i + 1 < steps.size()) logits = model.step({&id, 1}, cache);
  }
}

void follow_all(const LlamaModel& model, const Bounds& bounds, size_t prompts = 6) {
  const Json vectors = read_vectors("generation.json");
  ASSERT_EQ(vectors.at("prompts").size(), 6u);
  for (size_t i = 0; i < prompts; ++i) {
    const Json& prompt = vectors.at("prompts").at(i);
    SCOPED_TRACE(prompt.at("name").get<std::string>());
    follow(model, prompt, bounds);
  }
}

TEST_F(LlamaModelVectors, GreedyTokensAndLogitsEqualTheReference) { follow_all(*model_, kFloat); }

TEST(LlamaModelForms, DecodedWeightsGiveTheReferenceToo) {
  follow_all(*LlamaModel::load(*formats::GgufFile::open(model_path()), f32), kFloat, 2);
}

TEST(LlamaModelForms, ActivationsOfEightBitsStayNear) {
  follow_all(*load_quantised(Activations::kInt8), kEightBits);
}

TEST_F(LlamaModelVectors, PromptTokenByTokenEqualsOneBatch) {
  const std::vector<int32_t> tokens = {504, 2365, 6354, 16438, 351, 253};
  LlamaCache whole = model_->new_cache();
  const std::vector<float> batch = model_->step(tokens, whole);
  LlamaCache grown = model_->new_cache();
  std::vector<float> single;
  for (const int32_t& token : tokens) single = model_->step({&token, 1}, grown);
  for (size_t i = 0; i < batch.size(); ++i) ASSERT_NEAR(batch[i], single[i], kFloat.logit) << i;
}

TEST_F(LlamaModelVectors, RefusesWhatDoesNotFit) {
  LlamaCache cache = model_->new_cache();
  const int32_t outside = 49152;
  EXPECT_THROW(model_->step({&outside, 1}, cache), ValueError);
  EXPECT_THROW(model_->step({}, cache), ValueError);
  const std::vector<int32_t> many(8193, 1);
  EXPECT_THROW(model_->step(many, cache), ValueError);
  EXPECT_EQ(cache.tokens, 0);
}

TEST_F(LlamaModelVectors, StopsAtTheEndOfATurn) {
  auto tokenizer = Tokenizer::from_gguf(*formats::GgufFile::open(model_path()));
  const Json vectors = read_vectors("generation.json");
  for (const Json& prompt : vectors.at("prompts")) {
    if (prompt.at("f32_first_eog").is_null()) continue;
    SCOPED_TRACE(prompt.at("name").get<std::string>());
    GenerateOptions options;
    options.max_new_tokens = 64;
    std::string streamed;
    const Generation out =
        generate(*model_, tokenizer, prompt.at("prompt_ids").get<std::vector<int32_t>>(), options,
                 [&](std::string_view text) { streamed += text; });
    EXPECT_TRUE(out.ended);
    EXPECT_EQ(out.tokens.size(), prompt.at("f32_first_eog").get<size_t>());
    EXPECT_EQ(streamed, out.text);
  }
}

// A cache folder of the test's own.
class OwnCache {
 public:
  OwnCache() : folder_(fs::path(testing::TempDir()) / "llama-cache") {
    fs::remove_all(folder_);
    ::setenv("TENON_CACHE_DIR", folder_.c_str(), 1);
  }
  ~OwnCache() {
    ::unsetenv("TENON_CACHE_DIR");
    fs::remove_all(folder_);
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

  std::vector<fs::path> files(const std::string& prefix) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    }
    return found;
  }

 private:
  fs::path folder_;
};

// Bytes of this process in memory: the most since the last call.
int64_t peak_memory() {
  int64_t kilobytes = 0;
  std::string line;
  for (std::ifstream status("/proc/self/status"); std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kilobytes = std::stoll(line.substr(6));
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  return kilobytes * 1024;
}

std::vector<float> start_and_step(const formats::GgufFile& file, bool keep_packed = true) {
  const auto model = LlamaModel::load(file, MatrixForm::of_file(file), {}, keep_packed);
  LlamaCache cache = model->new_cache();
  const std::vector<int32_t> prompt = {504, 2365, 6354};
  return model->step(prompt, cache);
}

TEST(LlamaModelForms, MemoryIsThePackedWeightsAndALittle) {
  if (kAddressSanitizer) GTEST_SKIP() << "the address sanitizer has memory of its own";
  const OwnCache cache;
  const auto file = formats::GgufFile::open(model_path());
  start_and_step(*file);  // compiling takes more, the first time
  for (const bool keep_packed : {true, false}) {
    runtime::release_kept_memory();
    peak_memory();
    const int64_t before = peak_memory();
    start_and_step(*file, keep_packed);
    EXPECT_LT(peak_memory() - before, static_cast<int64_t>(file->size()) + (int64_t{40} << 20))
        << keep_packed;
  }
}

TEST(LlamaModelForms, StartsAgainFromWhatWasKept) {
  const OwnCache cache;
  const auto file = formats::GgufFile::open(model_path());
  const std::vector<float> first = start_and_step(*file);
  ASSERT_EQ(cache.files("llama-").size(), 1u);
  ASSERT_EQ(cache.files("packed-").size(), 1u);
  EXPECT_EQ(start_and_step(*file), first);
  // A file that is not whole is not used.
  const fs::path packed = cache.files("packed-")[0];
  fs::resize_file(packed, fs::file_size(packed) - 4096);
  EXPECT_EQ(start_and_step(*file), first);
  const fs::path programs = cache.files("llama-")[0];
  fs::resize_file(programs, 1000);
  EXPECT_EQ(start_and_step(*file), first);
  std::fstream(packed, std::ios::in | std::ios::out).seekp(100) << "damage";
  EXPECT_EQ(start_and_step(*file), first);
}

}  // namespace
}  // namespace tenon::pipelines
