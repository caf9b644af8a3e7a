// Hyper-parameters of a model of the Llama family, from the metadata of its GGUF file.
#pragma once

#include <cstdint>

#include "tenon/formats/gguf.h"

namespace tenon::pipelines {

struct LlamaConfig {
  int64_t blocks = 0;
  int64_t width = 0;         // of the residual stream
  int64_t feed_forward = 0;  // inner width of the feed-forward part
  int64_t heads = 0;         // query heads
  int64_t kv_heads = 0;      // key and value heads, each shared by heads / kv_heads query heads
  int64_t head_size = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;  // longest sequence the model was trained for
  double rope_base = 10000;
  double norm_eps = 1e-5;
  bool tied_head = false;  // the file has no output.weight: the embedding serves

  // Raises FormatError for missing or inconsistent metadata, UnsupportedError for another
  // architecture or for rope scaling.
  static LlamaConfig from_gguf(const formats::GgufFile& file);
};

}  // namespace tenon::pipelines
