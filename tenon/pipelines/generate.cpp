#include "tenon/pipelines/generate.h"

#include <algorithm>
#include <chrono>

namespace tenon::pipelines {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void check_prompt(const LlamaConfig& config, std::span<const int32_t> prompt) {
  if (prompt.empty()) {
    throw ValueError("generate: the prompt has no tokens",
                     {.hint = "give --prompt some text, or --prompt-tokens at least one id"});
  }
  for (int32_t token : prompt) {
    if (token >= 0 && token < config.vocabulary) continue;
    throw ValueError(fmt::format("generate: token {} is outside the vocabulary of {}", token,
                                 config.vocabulary));
  }
  if (static_cast<int64_t>(prompt.size()) > config.context) {
    throw ValueError(fmt::format("generate: a prompt of {} tokens exceeds the context of {}",
                                 prompt.size(), config.context));
  }
}

Generation generate(const LlamaModel& model, std::shared_ptr<const Tokenizer> tokenizer,
                    const std::vector<int32_t>& prompt, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& on_text) {
  check_prompt(model.config(), prompt);
  const int64_t room = model.config().context - static_cast<int64_t>(prompt.size());
  const int64_t limit = options.max_new_tokens < 0 ? room : std::min(options.max_new_tokens, room);

  Generation out;
  out.metrics.prompt_size = static_cast<int64_t>(prompt.size());
  Sampler sampler(options.sampler);
  for (int32_t token : prompt) sampler.accept(token);
  TextStream stream(tokenizer);
  auto emit = [&](const std::string& text) {
    out.text += text;
    if (on_text && !text.empty()) on_text(text);
  };

  LlamaCache cache = model.new_cache();
  const auto start = Clock::now();
  std::vector<float> logits = model.step(prompt, cache);
  const double prompt_seconds = seconds_since(start);
  out.metrics.prompt_tokens_per_second = static_cast<double>(prompt.size()) / prompt_seconds;
  auto first = Clock::now();
  for (int64_t i = 0; i < limit; ++i) {
    const int32_t token = sampler.sample(logits);
    sampler.accept(token);
    if (i == 0) {
      out.metrics.time_to_first_token_ms = seconds_since(start) * 1e3;
      first = Clock::now();
    }
    if (!options.ignore_eos && tokenizer->is_end_of_generation(token)) {
      out.ended = true;
      break;
    }
    out.tokens.push_back(token);
    emit(stream.push(token));
    if (i + 1 < limit) logits = model.step({&token, 1}, cache);
  }
  emit(stream.finish());
  out.metrics.output_size = static_cast<int64_t>(out.tokens.size());
  if (out.metrics.output_size > 1) {
    out.metrics.generation_tokens_per_second =
        static_cast<double>(out.metrics.output_size - 1) / seconds_since(first);
  }
  return out;
}

}  // namespace tenon::pipelines
