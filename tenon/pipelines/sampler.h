// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::pipelines {

// Applied in this order: repetition penalty, temperature, top-k, top-p, min-p, draw.
struct SamplerOptions {
  // 0 is greedy: the largest logit after the penalty, the lowest id among equals. Finite, not
  // negative.
  float temperature = 0.0f;
  // Keeps the `top_k` most likely tokens; 0, or a number over the vocabulary's, keeps all.
  int64_t top_k = 0;
  // Keeps the fewest most likely tokens whose probabilities add up to `top_p`, in (0, 1].
  float top_p = 1.0f;
  // Keeps tokens at least `min_p` times as likely as the likeliest, in [0, 1].
  float min_p = 0.0f;
  // Divides a positive logit of a token that occurred, multiplies a negative one; over 0, 1 is off.
  float repetition_penalty = 1.0f;
  // How many of the last tokens count as having occurred; 0: none, -1: all.
  int64_t repetition_window = 64;
  uint64_t seed = 0;
};

// Deterministic: the tokens depend on the options, the logits and the order of calls alone.
// Randomness is counter-based (Philox4x32-10, Salmon et al. 2011): the n-th draw of a seed is a
// function of both.
class Sampler {
 public:
  // Raises ValueError naming the option for a value outside its range.
  explicit Sampler(const SamplerOptions& options);

  // A token that occurred: of the prompt, or one that sample() gave.
  void accept(int32_t token);
  // The id of the next token; does not accept it. -inf excludes a token. Raises ValueError for no
  // logits, a NaN, +inf, or when every token is excluded.
  int32_t sample(std::span<const float> logits);
  // Forgets the tokens and starts the draws of the seed again.
  void reset();

 private:
  void penalise();
  int32_t draw();

  SamplerOptions options_;
  uint64_t draws_ = 0;
  std::vector<int32_t> history_;
  std::vector<float> logits_;
  struct Candidate {
    int32_t id;
    float logit;
    double weight;
  };
  std::vector<Candidate> candidates_;
};

// Four random words for a counter and a key.
struct PhiloxBlock {
  uint32_t words[4];
};
PhiloxBlock philox(uint64_t counter_low, uint64_t counter_high, uint64_t key);

}  // namespace tenon::pipelines
