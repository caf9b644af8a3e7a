// Pre-tokenisers of byte-level BPE: how a text is cut into the words inside which merges happen.
// Written by hand from the patterns that models are trained with; time is linear and the stack does
// not grow.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace tenon::pipelines {

enum class Pretokenizer {
  kGpt2,       // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kLlama3,     // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
               //  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kDigitsGpt2  // every single \p{N} alone, kGpt2 inside each stretch between
};

// By the value of tokenizer.ggml.pre; nullopt if unknown.
std::optional<Pretokenizer> pretokenizer_by_name(std::string_view name);

// Calls `word` with each word of well-formed UTF-8, in order; together they are the text.
void pretokenize(Pretokenizer kind, std::string_view text,
                 const std::function<void(std::string_view word)>& word);

}  // namespace tenon::pipelines
