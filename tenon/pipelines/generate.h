// Text generation: prompt in, tokens out, one at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/pipelines/llama/model.h"
#include "tenon/pipelines/sampler.h"
#include "tenon/pipelines/tokenizer.h"

namespace tenon::pipelines {

struct GenerateOptions {
  int64_t max_new_tokens = 256;  // -1: until the context is full
  bool ignore_eos = false;       // goes on after an end of turn or text
  SamplerOptions sampler = {};
};

struct GenerateMetrics {
  int64_t prompt_size = 0;  // tokens
  int64_t output_size = 0;  // tokens, the first one included
  double time_to_first_token_ms = 0;
  double prompt_tokens_per_second = 0;
  double generation_tokens_per_second = 0;  // of the tokens after the first; 0 when there are none
};

struct Generation {
  std::vector<int32_t> tokens;  // without the token that ended it
  std::string text;             // well-formed UTF-8
  bool ended = false;           // by a token that ends a turn or the text
  GenerateMetrics metrics;
};

// Raises ValueError for an empty prompt, a token outside the vocabulary, or more tokens than the
// context holds: what needs no model to be seen.
void check_prompt(const LlamaConfig& config, std::span<const int32_t> prompt);

// Continues `prompt`. `on_text` receives the text as it grows, cut only between characters. Raises
// what check_prompt raises.
Generation generate(const LlamaModel& model, std::shared_ptr<const Tokenizer> tokenizer,
                    const std::vector<int32_t>& prompt, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& on_text = {});

}  // namespace tenon::pipelines
