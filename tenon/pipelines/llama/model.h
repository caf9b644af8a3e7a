// A language model of the Llama family as two compiled programs: one for prompts of any length, one
// for a single token.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/frontend/compile.h"
#include "tenon/pipelines/llama/config.h"
#include "tenon/pipelines/llama/weights.h"

namespace tenon::pipelines {

// Keys and values of every block for the tokens so far: keys [blocks, kv_heads, head_size, room],
// values [blocks, kv_heads, room, head_size]. Positions that hold no token are zero.
struct LlamaCache {
  Tensor keys;
  Tensor values;
  int64_t tokens = 0;  // positions in use
  int64_t room = 0;
};

// The function that is compiled: logits f32[vocabulary] after the last of `tokens` i32[seq], which
// stand at `positions` i32[seq]; keys and values are written at these positions.
// Each block is a call of one shared body with the prefix "blk.<i>.".
Tensor llama_forward(const LlamaConfig& config, DType weights, const Tensor& tokens,
                     const Tensor& positions, Tensor& keys, Tensor& values);

using LlamaProgram = CompiledCallable<Tensor>;
// seq < 0: any number of tokens; else exactly that many.
LlamaProgram compile_llama(const LlamaConfig& config, DType weights, int64_t seq,
                           const Weights& data = {});

class LlamaModel {
 public:
  // Decodes the weights and compiles both programs. Raises what reading and compiling raise.
  static std::shared_ptr<LlamaModel> load(const formats::GgufFile& file, DType weights,
                                          const Progress& progress = {});

  const LlamaConfig& config() const { return config_; }
  LlamaCache new_cache() const;
  // Logits after the last of `tokens`, which follow what the cache holds; the cache grows by them.
  // Raises ValueError for no tokens, a token outside the vocabulary, or more than the context.
  std::vector<float> step(std::span<const int32_t> tokens, LlamaCache& cache) const;

 private:
  LlamaModel(const LlamaConfig& config, LlamaProgram prompt, LlamaProgram decode)
      : config_(config), prompt_(std::move(prompt)), decode_(std::move(decode)) {}
  void make_room(LlamaCache& cache, int64_t tokens) const;

  LlamaConfig config_;
  LlamaProgram prompt_;
  LlamaProgram decode_;
};

}  // namespace tenon::pipelines
