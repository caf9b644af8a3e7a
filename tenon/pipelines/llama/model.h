// A language model of the Llama family as two programs that share their weights: one for prompts of
// any length, one for a single token. Both take any number of sequences of equal length.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/frontend/compile.h"
#include "tenon/pipelines/llama/config.h"
#include "tenon/pipelines/llama/weights.h"

namespace tenon::pipelines {

// Keys and values of every block for the tokens so far:
// keys f32[blocks, batch, kv_heads, head_size, room],
// values f32[blocks, batch, kv_heads, room, head_size]. Positions that hold no token are zero.
struct LlamaCache {
  runtime::Array keys;
  runtime::Array values;
  int64_t batch = 1;   // sequences
  int64_t tokens = 0;  // positions in use, the same for each sequence
  int64_t room = 0;
};

// The function that is compiled: logits f32[batch, vocabulary] after the last of `tokens`
// i32[batch, seq], which stand at `positions` i32[seq]; keys and values are written at these
// positions. Each block is a call of one shared body with the prefix "blk.<i>.".
Tensor llama_forward(const LlamaConfig& config, const MatrixForm& form, const Tensor& tokens,
                     const Tensor& positions, Tensor& keys, Tensor& values);

using LlamaProgram = CompiledCallable<Tensor>;
// Its weights are not bound yet.
LlamaProgram compile_llama(const LlamaConfig& config, const MatrixForm& form,
                           const std::string& name, const Dim& batch, const Dim& seq);

class LlamaModel {
 public:
  // Compiles both programs and binds them to the file's weights in this form, one by one. Raises
  // what reading and compiling raise; UnsupportedError for a file with tensors that no program
  // reads.
  // `keep_packed`: matrices in the file's encodings are packed once and the result, about as large
  // as the file, is kept on disk for later processes (packed_file.h).
  static std::shared_ptr<LlamaModel> load(const formats::GgufFile& file, const MatrixForm& form,
                                          const Progress& progress = {}, bool keep_packed = false);
  // Compiles both programs and binds them to `data`, whose matrices have this form.
  static std::shared_ptr<LlamaModel> compile(const LlamaConfig& config, const MatrixForm& form,
                                             const Weights& data);
  // Writes the programs "prompt" and "decode" into one artifact, which holds no weights.
  static void save(const LlamaConfig& config, const MatrixForm& form, const std::string& path,
                   const std::vector<std::string>& levels = kSavedLevels);
  // compile() with the programs of such an artifact: nothing is compiled.
  static std::shared_ptr<LlamaModel> load_saved(const std::string& path, const LlamaConfig& config,
                                                const Weights& data);

  const LlamaConfig& config() const { return config_; }
  LlamaCache new_cache(int64_t batch = 1) const;
  // Logits [batch, vocabulary] after the last of `tokens` [batch, seq], which follow what the cache
  // holds; the cache grows by them. Raises ValueError for no tokens, a number that is no multiple
  // of the batch, a token outside the vocabulary, or more than the context.
  std::vector<float> step(std::span<const int32_t> tokens, LlamaCache& cache) const;

 private:
  // Tokens, positions, keys, values → logits.
  using Run = std::function<std::vector<runtime::Array>(const std::vector<runtime::Array>&)>;
  LlamaModel(const LlamaConfig& config, Run prompt, Run decode)
      : config_(config), prompt_(std::move(prompt)), decode_(std::move(decode)) {}
  void make_room(LlamaCache& cache, int64_t tokens) const;

  LlamaConfig config_;
  Run prompt_;
  Run decode_;
};

}  // namespace tenon::pipelines
