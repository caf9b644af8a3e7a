// Byte-level BPE tokeniser read from a GGUF file (tokenizer.ggml.model "gpt2").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/formats/gguf.h"
#include "tenon/pipelines/pretokenizer.h"

namespace tenon::pipelines {

enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct EncodeOptions {
  // Control tokens in the text, exactly as spelled, become their ids; else they are plain text.
  // User-defined tokens always become their ids.
  bool parse_special = false;
  // Adds the begin and end tokens that the file asks for.
  bool add_special = false;
};

class Tokenizer {
 public:
  // Raises FormatError for a damaged or inconsistent vocabulary, UnsupportedError for another kind
  // of tokeniser or an unknown tokenizer.ggml.pre.
  static std::shared_ptr<const Tokenizer> from_gguf(const formats::GgufFile& file);
  ~Tokenizer();

  // Ids of a text. A byte that belongs to no well-formed UTF-8 sequence is read as U+FFFD; a byte
  // that the vocabulary has no token for is left out.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // The bytes of the ids, which need not be UTF-8. Control tokens are spelled when `show_special`,
  // else nothing. Raises IndexError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool show_special = true) const;

  int32_t size() const { return static_cast<int32_t>(types_.size()); }
  // The bytes of one token. Raises IndexError.
  std::string_view bytes(int32_t id) const;
  TokenType type(int32_t id) const;
  // The id of a token by its exact bytes, of any type; nullopt if there is none.
  std::optional<int32_t> find(std::string_view bytes) const;

  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  // The end of a text or of a turn: the ids that end generation, ascending.
  const std::vector<int32_t>& end_of_generation() const { return end_of_generation_; }
  bool is_end_of_generation(int32_t id) const;
  // What a caller may want to print; empty for most files.
  const std::string& warning() const { return warning_; }

 private:
  struct Tables;
  Tokenizer();
  void read_vocabulary(const formats::GgufFile& file);
  void read_merges(const formats::GgufFile& file);
  void read_special(const formats::GgufFile& file);
  void encode_plain(std::string_view text, std::vector<int32_t>& out) const;
  void encode_word(std::string_view word, std::vector<int32_t>& out) const;
  void check_id(int32_t id) const;

  std::unique_ptr<Tables> tables_;
  std::vector<TokenType> types_;
  Pretokenizer pretokenizer_ = Pretokenizer::kGpt2;
  bool whole_words_ = false;  // a word that is a token is taken as it is, without merges
  bool add_bos_ = false;
  bool add_eos_ = false;
  std::optional<int32_t> bos_;
  std::optional<int32_t> eos_;
  std::vector<int32_t> end_of_generation_;
  std::string warning_;
};

// Text from ids as they come, cut only between characters: bytes that begin a character wait for
// the rest of it. What comes out is well-formed; bytes that never become a character are U+FFFD.
class TextStream {
 public:
  explicit TextStream(std::shared_ptr<const Tokenizer> tokenizer, bool show_special = false)
      : tokenizer_(std::move(tokenizer)), show_special_(show_special) {}
  // The text that `id` completes, maybe none. Raises IndexError.
  std::string push(int32_t id);
  // What still waits.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool show_special_;
  std::string pending_;
};

}  // namespace tenon::pipelines
