// Reading a vocabulary from a GGUF file and checking it.
#include <algorithm>
#include <cstring>
#include <set>

#include "tenon/base/error.h"
#include "tenon/base/utf8.h"
#include "tenon/pipelines/bpe_tables.h"

namespace tenon::pipelines {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kMerges = "tokenizer.ggml.merges";

template <class... Args>
[[noreturn]] void refuse(const formats::GgufFile& file, fmt::format_string<Args...> text,
                         Args&&... args) {
  throw FormatError(file.name() + ": " + fmt::format(text, std::forward<Args>(args)...));
}

// The printable alphabet in which byte-level vocabularies are stored: 188 bytes stand for
// themselves, the others in order for U+0100 and up. Index: code point below 0x144; value: the
// byte, or -1.
constexpr auto kByteOfCodePoint = [] {
  std::array<int16_t, 0x144> out{};
  for (int16_t& value : out) value = -1;
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    out[static_cast<size_t>(itself ? b : next++)] = static_cast<int16_t>(b);
  }
  return out;
}();

// The bytes that a text in the alphabet stands for; false when a code point is not of the alphabet.
bool append_mapped(std::string_view text, std::string& out) {
  const size_t before = out.size();
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decode_utf8(text, at);
    int byte = c.bytes != 0 && c.value < kByteOfCodePoint.size() ? kByteOfCodePoint[c.value] : -1;
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
    at += c.bytes;
  }
  return true;
}

// The byte of "<0xHH>", -1 for any other text.
int byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  int high = digit(text[3]);
  int low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::optional<int32_t> special_id(const formats::GgufFile& file, const char* key, int32_t size) {
  std::optional<int64_t> id = file.get_int(key);
  if (!id) return std::nullopt;
  // Some writers put the largest u32 for "none".
  if (*id == UINT32_MAX) return std::nullopt;
  if (*id < 0 || *id >= size) {
    refuse(file, "key {} is {}, outside the vocabulary of {} tokens", key, *id, size);
  }
  return static_cast<int32_t>(*id);
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_gguf(const formats::GgufFile& file) {
  std::string_view model = file.require_string("tokenizer.ggml.model");
  if (model != "gpt2") {
    throw UnsupportedError(
        fmt::format("{}: tokeniser \"{}\" is not supported, only byte-level BPE is (\"gpt2\")",
                    file.name(), replace_invalid_utf8(model)));
  }
  std::shared_ptr<Tokenizer> out(new Tokenizer);
  if (auto pre = file.get_string("tokenizer.ggml.pre")) {
    std::optional<Pretokenizer> kind = pretokenizer_by_name(*pre);
    if (!kind) {
      throw UnsupportedError(
          fmt::format("{}: tokenizer.ggml.pre \"{}\" is not known, so texts would be cut wrongly",
                      file.name(), replace_invalid_utf8(*pre)));
    }
    out->pretokenizer_ = *kind;
  } else {
    out->warning_ =
        file.name() + ": tokenizer.ggml.pre is missing, texts are cut by the rules of gpt-2";
  }
  out->whole_words_ = out->pretokenizer_ == Pretokenizer::kLlama3;
  out->read_vocabulary(file);
  out->read_merges(file);
  out->read_special(file);
  return out;
}

void Tokenizer::read_vocabulary(const formats::GgufFile& file) {
  const std::vector<std::string_view> tokens = file.require_strings(kTokens);
  const std::vector<int64_t> types =
      file.get_ints("tokenizer.ggml.token_type").value_or(std::vector<int64_t>(tokens.size(), 1));
  if (tokens.empty() || tokens.size() > INT32_MAX / 2) refuse(file, "{} tokens", tokens.size());
  if (types.size() != tokens.size()) {
    refuse(file, "{} token types for {} tokens", types.size(), tokens.size());
  }
  if (auto scores = file.find("tokenizer.ggml.scores"); scores && scores->count != tokens.size()) {
    refuse(file, "{} token scores for {} tokens", scores->count, tokens.size());
  }
  Tables& tables = *tables_;
  tables.ids.reserve(tokens.size());
  tables.starts.reserve(tokens.size() + 1);
  types_.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string_view text = tokens[i];
    if (types[i] < 1 || types[i] > 6) refuse(file, "token {} has the unknown type {}", i, types[i]);
    if (text.empty()) refuse(file, "token {} is empty", i);
    types_.push_back(static_cast<TokenType>(types[i]));
    if (types_.back() == TokenType::kByte) {
      int byte = byte_of_token(text);
      if (byte < 0) refuse(file, "byte token {} is not spelled <0xHH>", i);
      tables.arena += static_cast<char>(byte);
    } else if (types_.back() != TokenType::kNormal || !append_mapped(text, tables.arena)) {
      tables.arena += text;
    }
    tables.starts.push_back(tables.arena.size());
    if (!tables.insert(static_cast<int32_t>(i))) {
      refuse(file, "tokens {} and {} are the same",
             *tables.find(tables.bytes(static_cast<int32_t>(i))), i);
    }
  }
  for (int b = 0; b < 256; ++b) {
    char byte = static_cast<char>(b);
    tables.byte_ids[static_cast<size_t>(b)] = tables.find({&byte, 1}).value_or(-1);
  }
}

void Tokenizer::read_merges(const formats::GgufFile& file) {
  const std::vector<std::string_view> merges = file.require_strings(kMerges);
  if (merges.size() > INT32_MAX / 2) refuse(file, "{} merges", merges.size());
  tables_->merges.reserve(merges.size());
  std::string piece;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    std::string_view merge = merges[rank];
    size_t space = merge.find(' ', 1);
    if (merge.empty() || space == merge.npos || space + 1 == merge.size()) {
      refuse(file, "merge {} is not two pieces with a space between", rank);
    }
    piece.clear();
    bool mapped = append_mapped(merge.substr(0, space), piece);
    const size_t middle = piece.size();
    mapped = mapped && append_mapped(merge.substr(space + 1), piece);
    std::string_view whole = piece;
    auto left = tables_->find(whole.substr(0, middle));
    auto right = tables_->find(whole.substr(middle));
    auto merged = tables_->find(whole);
    if (!mapped || !left || !right || !merged) {
      refuse(file, "merge {} names a piece that is not in the vocabulary", rank);
    }
    tables_->insert_merge(*left, *right, {static_cast<int32_t>(rank), *merged});
  }
}

void Tokenizer::read_special(const formats::GgufFile& file) {
  bos_ = special_id(file, "tokenizer.ggml.bos_token_id", size());
  eos_ = special_id(file, "tokenizer.ggml.eos_token_id", size());
  add_bos_ = file.get_bool("tokenizer.ggml.add_bos_token")
                 .value_or(pretokenizer_ == Pretokenizer::kLlama3 && bos_.has_value());
  add_eos_ = file.get_bool("tokenizer.ggml.add_eos_token").value_or(false);
  if (add_bos_ && !bos_) refuse(file, "a begin token is to be added and none is named");
  if (add_eos_ && !eos_) refuse(file, "an end token is to be added and none is named");
  for (const char* key : {"tokenizer.ggml.unknown_token_id", "tokenizer.ggml.separator_token_id",
                          "tokenizer.ggml.padding_token_id"}) {
    special_id(file, key, size());
  }

  std::set<int32_t> ends;
  if (eos_) ends.insert(*eos_);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (auto id = special_id(file, key, size())) ends.insert(*id);
  }
  // Chat models end a turn with a token that eos_token_id need not name.
  for (std::string_view name : {"<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
                                "<|end_of_text|>", "<|end|>", "<end_of_turn>", "</s>"}) {
    std::optional<int32_t> id = find(name);
    if (id && type(*id) == TokenType::kControl) ends.insert(*id);
  }
  end_of_generation_.assign(ends.begin(), ends.end());

  auto add = [](Tables::Specials& specials, std::string_view text) {
    specials.begins[static_cast<uint8_t>(text[0])] = true;
    specials.lengths.push_back(text.size());
  };
  for (int32_t id = 0; id < size(); ++id) {
    TokenType kind = type(id);
    bool control = kind == TokenType::kControl || kind == TokenType::kUnknown;
    if (control || kind == TokenType::kUserDefined) add(tables_->with_control, bytes(id));
    if (kind == TokenType::kUserDefined) add(tables_->user_defined, bytes(id));
  }
  for (Tables::Specials* specials : {&tables_->user_defined, &tables_->with_control}) {
    auto& lengths = specials->lengths;
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

}  // namespace tenon::pipelines
