#include "tenon/pipelines/sampler.h"

#include <algorithm>
#include <cmath>

#include "tenon/base/error.h"

namespace tenon::pipelines {
namespace {

template <class T>
void check_option(bool right, const char* name, T value, const char* range) {
  if (!right) {
    throw ValueError(fmt::format("sampler: {} is {}, expected {}", name, value, range),
                     {.label = "sampler_option"});
  }
}

// In [0, 1), 53 bits.
double uniform(uint64_t seed, uint64_t draw) {
  PhiloxBlock block = philox(draw, 0, seed);
  uint64_t bits = static_cast<uint64_t>(block.words[1]) << 32 | block.words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

PhiloxBlock philox(uint64_t counter_low, uint64_t counter_high, uint64_t key) {
  uint32_t c[4] = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                   static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0];
    uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
                        static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    std::copy(std::begin(next), std::end(next), std::begin(c));
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  const SamplerOptions& o = options_;
  check_option(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", o.temperature,
               "a finite number of at least 0");
  check_option(o.top_k >= 0, "top_k", o.top_k, "at least 0");
  check_option(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "a number over 0 and at most 1");
  check_option(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "a number from 0 to 1");
  check_option(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty),
               "repetition_penalty", o.repetition_penalty, "a finite number over 0");
  check_option(o.repetition_window >= -1, "repetition_window", o.repetition_window, "at least -1");
}

void Sampler::accept(int32_t token) { history_.push_back(token); }

void Sampler::reset() {
  history_.clear();
  draws_ = 0;
}

void Sampler::penalise() {
  if (options_.repetition_penalty == 1.0f || options_.repetition_window == 0) return;
  size_t window = history_.size();
  if (options_.repetition_window > 0) {
    window = std::min(window, static_cast<size_t>(options_.repetition_window));
  }
  std::vector<int32_t> recent(history_.end() - static_cast<std::ptrdiff_t>(window), history_.end());
  std::sort(recent.begin(), recent.end());
  recent.erase(std::unique(recent.begin(), recent.end()), recent.end());
  for (int32_t id : recent) {
    if (id < 0 || static_cast<size_t>(id) >= logits_.size()) continue;
    float& logit = logits_[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
  }
}

int32_t Sampler::sample(std::span<const float> logits) {
  if (logits.empty()) throw ValueError("sampler: no logits");
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == HUGE_VALF) {
      throw ValueError(fmt::format("sampler: logit {} is {}", i, logits[i]),
                       {.label = "sampler_logit"});
    }
  }
  logits_.assign(logits.begin(), logits.end());
  penalise();
  auto best = std::max_element(logits_.begin(), logits_.end());  // the first of equals
  if (*best == -HUGE_VALF) {
    throw ValueError("sampler: every token is excluded", {.label = "sampler_excluded"});
  }
  if (options_.temperature == 0) return static_cast<int32_t>(best - logits_.begin());
  return draw();
}

int32_t Sampler::draw() {
  candidates_.clear();
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] != -HUGE_VALF) candidates_.push_back({static_cast<int32_t>(i), logits_[i], 0});
  }
  auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  size_t keep = candidates_.size();
  if (options_.top_k > 0) keep = std::min(keep, static_cast<size_t>(options_.top_k));
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(keep),
                    candidates_.end(), likelier);
  candidates_.resize(keep);

  // In double and relative to the largest, no temperature overflows.
  double total = 0;
  for (Candidate& c : candidates_) {
    double margin = static_cast<double>(c.logit) - static_cast<double>(candidates_[0].logit);
    c.weight = std::exp(margin / static_cast<double>(options_.temperature));
    total += c.weight;
  }
  double kept_weight = 0;
  size_t kept = 0;
  const double enough = static_cast<double>(options_.top_p) * total;
  const double least = static_cast<double>(options_.min_p);
  while (kept < candidates_.size()) {
    if (kept > 0 && candidates_[kept].weight < least) break;  // the first weighs 1
    kept_weight += candidates_[kept++].weight;
    if (options_.top_p < 1 && kept_weight >= enough) break;
  }
  double at = uniform(options_.seed, draws_++) * kept_weight;
  for (size_t i = 0; i < kept; ++i) {
    at -= candidates_[i].weight;
    if (at < 0) return candidates_[i].id;
  }
  // Rounding may leave `at` at 0 after the last: the last that has any weight.
  while (kept > 1 && candidates_[kept - 1].weight == 0) --kept;
  return candidates_[kept - 1].id;
}

}  // namespace tenon::pipelines
