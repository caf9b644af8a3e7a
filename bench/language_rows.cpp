// SmolLM2 in every format that `./dev bench` makes of it.
#include <filesystem>

#include "harness.h"
#include "tenon/pipelines/generate.h"

namespace tenon::bench {
namespace {

std::shared_ptr<tn::pipelines::LlamaModel> load(const std::string& type,
                                                tn::Activations activations,
                                                bool keep_packed = false) {
  auto file = tn::formats::GgufFile::open(model_file(type));
  return tn::pipelines::LlamaModel::load(
      *file, tn::pipelines::MatrixForm::of_file(*file, activations), {}, keep_packed);
}

std::vector<int32_t> prompt_of(int length) {
  std::vector<int32_t> prompt(static_cast<size_t>(length));
  for (int i = 0; i < length; ++i) prompt[static_cast<size_t>(i)] = 1000 + 37 * i;
  return prompt;
}

std::vector<Json> speed(const std::string& name, const std::string& type,
                        tn::Activations activations) {
  auto model = load(type, activations);
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
  return {row(name + "_prompt", "tokens/s", prompt_rates),
          row(name + "_decode", "tokens/s", decode_rates)};
}

// From opening the file to the first token, in a process of its own whose programs, and for
// llm_start_kept packed weights, an earlier one left on disk.
Json start(const std::string& name) {
  const std::string folder = "build/bench-cache";
  std::filesystem::remove_all(folder);
  child(name, folder);
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(child(name, folder));
  std::filesystem::remove_all(folder);
  return row(name, "ms", times);
}

}  // namespace

std::string model_file(const std::string& type) {
  return fmt::format("build/models/SmolLM2-135M-Instruct.{}.gguf", type);
}

void add_language_rows(Rows& rows) {
  for (const char* type : {"F32", "Q4_1", "Q4_0", "Q4_K", "Q6_K", "Q8_0"}) {
    const std::string name = fmt::format("llm_{}", type);
    rows.emplace_back(name, [=] { return speed(name, type, tn::Activations::kInt8); });
  }
  rows.emplace_back("llm_Q4_1_exact",
                    [] { return speed("llm_Q4_1_exact", "Q4_1", tn::Activations::kExact); });
  for (const char* name : {"llm_start", "llm_start_kept"}) {
    add_row(rows, name, [name] { return start(name); });
  }
}

double measure_start(bool keep_packed) {
  const auto begin = Clock::now();
  auto model = load("Q4_1", tn::Activations::kInt8, keep_packed);
  auto cache = model->new_cache();
  model->step(prompt_of(16), cache);
  return ms_since(begin);
}

}  // namespace tenon::bench
