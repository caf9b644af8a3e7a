#include "tenon/pipelines/chat_template.h"

namespace tenon::pipelines {

ChatTemplate::ChatTemplate(std::string_view source, std::string bos, std::string eos)
    : root_(jinja::parse(source)), bos_(std::move(bos)), eos_(std::move(eos)) {}

std::optional<ChatTemplate> ChatTemplate::from_gguf(const formats::GgufFile& file,
                                                    const Tokenizer& tokenizer) {
  std::optional<std::string_view> source = file.get_string("tokenizer.chat_template");
  if (!source) return std::nullopt;
  auto spelled = [&](std::optional<int32_t> id) {
    return id ? std::string(tokenizer.bytes(*id)) : std::string();
  };
  return ChatTemplate(*source, spelled(tokenizer.bos()), spelled(tokenizer.eos()));
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 bool add_generation_prompt) const {
  jinja::List list;
  for (const ChatMessage& message : messages) {
    jinja::Dict dict;
    dict.items = {{"role", {message.role}}, {"content", {message.content}}};
    list.push_back(jinja::Value::of(std::move(dict)));
  }
  jinja::Dict variables;
  variables.items = {{"messages", jinja::Value::of(std::move(list))},
                     {"add_generation_prompt", {add_generation_prompt}},
                     {"bos_token", {bos_}},
                     {"eos_token", {eos_}}};
  return jinja::render(*root_, variables);
}

}  // namespace tenon::pipelines
