// SmolLM2 in every format that `./dev bench` makes of it.
#include <filesystem>

#include "harness.h"
#include "tenon/pipelines/generate.h"

namespace tenon::bench {
namespace {

std::shared_ptr<tn::pipelines::LlamaModel> load(const std::string& type, bool keep_packed = false) {
  auto file = tn::formats::GgufFile::open(model_file(type));
  return tn::pipelines::LlamaModel::load(*file, tn::pipelines::MatrixForm::of_file(*file), {},
                                         keep_packed);
}

std::vector<int32_t> prompt_of(int length) {
  std::vector<int32_t> prompt(static_cast<size_t>(length));
  for (int i = 0; i < length; ++i) prompt[static_cast<size_t>(i)] = 1000 + 37 * i;
  return prompt;
}

std::vector<Json> speed(const std::string& type) {
  auto model = load(type);
  const std::vector<int32_t> prompt = prompt_of(128);
  std::vector<double> prompt_rates;
  std::vector<double> decode_rates;
  for (int i = 0; i < 6; ++i) {
    auto cache = model->new_cache();
    auto start = Clock::now();
    model->step(prompt, cache);
    const double prompt_ms = ms_since(start);
    start = Clock::now();
    for (int32_t t = 0; t < 64; ++t) {
      const int32_t token = 2000 + t;
      model->step({&token, 1}, cache);
    }
    if (i == 0) continue;  // warm-up
    prompt_rates.push_back(128e3 / prompt_ms);
    decode_rates.push_back(64e3 / ms_since(start));
  }
  return {row(fmt::format("llm_{}_prompt", type), "tokens/s", prompt_rates),
          row(fmt::format("llm_{}_decode", type), "tokens/s", decode_rates)};
}

// From opening the file to the first token, in a process of its own whose kernels an earlier one
// left on disk.
Json start() {
  const std::string folder = "build/bench-cache";
  std::filesystem::remove_all(folder);
  child("llm_start", folder);
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(child("llm_start", folder));
  std::filesystem::remove_all(folder);
  return row("llm_start", "ms", times);
}

}  // namespace

std::string model_file(const std::string& type) {
  return fmt::format("build/models/SmolLM2-135M-Instruct.{}.gguf", type);
}

void add_language_rows(Rows& rows) {
  for (const char* type : {"F32", "Q4_1", "Q4_0", "Q4_K", "Q6_K", "Q8_0"}) {
    rows.emplace_back(fmt::format("llm_{}", type), [type] { return speed(type); });
  }
  add_row(rows, "llm_start", start);
}

double measure_start() {
  const auto begin = Clock::now();
  auto model = load("Q4_1", /*keep_packed=*/true);
  auto cache = model->new_cache();
  model->step(prompt_of(16), cache);
  return ms_since(begin);
}

}  // namespace tenon::bench
