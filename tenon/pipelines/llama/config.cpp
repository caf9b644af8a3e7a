#include "tenon/pipelines/llama/config.h"

#include <string>

#include "tenon/base/error.h"

namespace tenon::pipelines {
namespace {

int64_t require_positive(const formats::GgufFile& file, const std::string& key) {
  const int64_t value = file.require_int(key);
  if (value <= 0 || value > (int64_t{1} << 31)) {
    throw FormatError(
        fmt::format("{}: {} is {}, expected a positive number", file.name(), key, value));
  }
  return value;
}

}  // namespace

LlamaConfig LlamaConfig::from_gguf(const formats::GgufFile& file) {
  const std::string architecture(file.require_string("general.architecture"));
  if (architecture != "llama") {
    throw UnsupportedError(fmt::format("{}: architecture \"{}\" is not of the Llama family",
                                       file.name(), architecture),
                           {.hint = "general.architecture must be \"llama\""});
  }
  LlamaConfig config;
  config.blocks = require_positive(file, "llama.block_count");
  config.width = require_positive(file, "llama.embedding_length");
  config.feed_forward = require_positive(file, "llama.feed_forward_length");
  config.heads = require_positive(file, "llama.attention.head_count");
  config.kv_heads = file.get_int("llama.attention.head_count_kv").value_or(config.heads);
  config.context = require_positive(file, "llama.context_length");
  config.head_size =
      file.get_int("llama.attention.key_length").value_or(config.width / config.heads);
  config.rope_base = file.get_float("llama.rope.freq_base").value_or(10000.0);
  config.norm_eps = file.require_float("llama.attention.layer_norm_rms_epsilon");
  if (config.kv_heads <= 0 || config.heads % config.kv_heads != 0 || config.head_size <= 0 ||
      config.head_size % 2 != 0) {
    throw FormatError(fmt::format("{}: {} query heads, {} key/value heads of size {} do not fit",
                                  file.name(), config.heads, config.kv_heads, config.head_size));
  }
  const std::string scaling(file.get_string("llama.rope.scaling.type").value_or("none"));
  if (scaling != "none" || file.find_tensor("rope_freqs.weight") != nullptr) {
    throw UnsupportedError(
        fmt::format("{}: rope scaling \"{}\" is not supported", file.name(), scaling));
  }
  const int64_t rotated = file.get_int("llama.rope.dimension_count").value_or(config.head_size);
  if (rotated != config.head_size) {
    throw UnsupportedError(fmt::format("{}: rope over {} of {} dimensions is not supported",
                                       file.name(), rotated, config.head_size));
  }
  const formats::GgufTensor& embedding = file.require_tensor("token_embd.weight");
  if (embedding.shape.size() != 2 || embedding.shape[1] != config.width) {
    throw FormatError(file.name() +
                      ": token_embd.weight does not have llama.embedding_length columns");
  }
  config.vocabulary = embedding.shape[0];
  config.tied_head = file.find_tensor("output.weight") == nullptr;
  return config;
}

}  // namespace tenon::pipelines
