// The chat template of a model: messages to the prompt that the model was trained on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tenon/pipelines/jinja.h"
#include "tenon/pipelines/tokenizer.h"

namespace tenon::pipelines {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

class ChatTemplate {
 public:
  // Parses a Jinja template (jinja.h says what is read). `bos` and `eos` are the texts of bos_token
  // and eos_token. Raises FormatError, UnsupportedError.
  explicit ChatTemplate(std::string_view source, std::string bos = "", std::string eos = "");
  // The template of a file; nullopt when it has none.
  static std::optional<ChatTemplate> from_gguf(const formats::GgufFile& file,
                                               const Tokenizer& tokenizer);

  // The prompt, to be encoded with parse_special. `add_generation_prompt` ends it with the
  // beginning of the assistant's answer. Contents are taken as they are: a marker inside a message
  // becomes a control token when the prompt is encoded. Raises ValueError for messages that the
  // template refuses.
  std::string render(std::span<const ChatMessage> messages,
                     bool add_generation_prompt = true) const;

 private:
  jinja::NodePtr root_;
  std::string bos_;
  std::string eos_;
};

}  // namespace tenon::pipelines
