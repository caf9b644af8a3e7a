// The tokeniser vectors of the demo's model (tests/data/llm-vectors/README.md). TENON_LLM_VECTORS
// names another folder of the same form, TENON_MODEL another copy of the model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tenon/base/mmap.h"
#include "tenon/base/utf8.h"
#include "tenon/pipelines/chat_template.h"
#include "tenon/pipelines/tokenizer.h"
#include "tests/test_data.h"

namespace tenon::pipelines {
namespace {

using Ids = std::vector<int32_t>;

nlohmann::json vectors(const char* name) {
  auto file =
      MappedFile::open(data_path("TENON_LLM_VECTORS", "tests/data/llm-vectors") + "/" + name);
  const auto* text = reinterpret_cast<const char*>(file->bytes().data());
  return nlohmann::json::parse(text, text + file->bytes().size());
}

std::shared_ptr<const Tokenizer> model_tokenizer() {
  static const auto tokenizer = Tokenizer::from_gguf(*formats::GgufFile::open(model_path()));
  return tokenizer;
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

TEST(TokenizerVectors, EveryText) {
  auto tokenizer = model_tokenizer();
  nlohmann::json cases = vectors("tokenizer.json").at("cases");
  EXPECT_GT(cases.size(), 100u);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.at("id").get<std::string>() + " " + c.at("text").dump());
    const std::string text = from_hex(c.at("hex"));
    const Ids plain = c.at("ids");
    const Ids special = c.contains("ids_special") ? c.at("ids_special").get<Ids>() : plain;
    EXPECT_EQ(tokenizer->encode(text), plain);
    EXPECT_EQ(tokenizer->encode(text, {.add_special = true}), plain);
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = true}), special);
    auto expected = [&](const char* key) { return c.contains(key) ? from_hex(c.at(key)) : text; };
    EXPECT_EQ(tokenizer->decode(plain), expected("detok_hex"));
    EXPECT_EQ(tokenizer->decode(special),
              expected(c.contains("ids_special") ? "detok_special_hex" : "detok_hex"));
    if (c.contains("detok_special_hidden_hex")) {
      EXPECT_EQ(tokenizer->decode(special, false), from_hex(c.at("detok_special_hidden_hex")));
    }
  }
}

// Overlong forms, surrogates and code points above U+10FFFF are not well-formed: they become U+FFFD
// here, one a byte, where the peer keeps them or ends the process.
TEST(TokenizerVectors, InvalidUtf8) {
  auto tokenizer = model_tokenizer();
  int compared = 0;
  nlohmann::json cases = vectors("tokenizer-invalid-utf8.json").at("cases");
  for (const auto& c : cases) {
    const std::string hex = c.at("hex");
    SCOPED_TRACE(hex);
    const std::string text = from_hex(hex);
    const Ids ids = tokenizer->encode(text);
    EXPECT_EQ(ids, tokenizer->encode(replace_invalid_utf8(text)));
    if (c.contains("result") || hex == "c080" || hex == "eda080") {
      EXPECT_EQ(ids, Ids(text.size(), 24211));
      continue;
    }
    EXPECT_EQ(ids, c.at("ids").get<Ids>());
    EXPECT_EQ(tokenizer->decode(ids), from_hex(c.at("detok_hex")));
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(TokenizerVectors, PromptsOfTheGenerations) {
  auto tokenizer = model_tokenizer();
  nlohmann::json prompts = vectors("generation.json").at("prompts");
  for (const auto& p : prompts) {
    EXPECT_EQ(tokenizer->encode(p.at("text").get<std::string>(), {.parse_special = true}),
              p.at("prompt_ids").get<Ids>());
    EXPECT_EQ(tokenizer->decode(p.at("f32_ids").get<Ids>()), from_hex(p.at("f32_text_hex")));
  }
}

TEST(TokenizerVectors, ChatPromptsOfTheGenerations) {
  auto chat = ChatTemplate::from_gguf(*formats::GgufFile::open(model_path()), *model_tokenizer());
  ASSERT_TRUE(chat.has_value());
  int checked = 0;
  nlohmann::json prompts = vectors("generation.json").at("prompts");
  for (const auto& p : prompts) {
    if (p.at("kind") != "chat") continue;
    std::vector<ChatMessage> messages;
    for (const auto& m : p.at("messages")) messages.push_back({m.at("role"), m.at("content")});
    EXPECT_EQ(chat->render(messages), p.at("text").get<std::string>());
    ++checked;
  }
  EXPECT_EQ(checked, 2);
}

TEST(TokenizerVectors, StreamsCutOnlyBetweenCharacters) {
  auto tokenizer = model_tokenizer();
  int held = 0;
  nlohmann::json cases = vectors("tokenizer.json").at("cases");
  for (const auto& c : cases) {
    TextStream stream(tokenizer, true);
    std::string whole;
    const Ids ids = c.at("ids");
    for (int32_t id : ids) {
      std::string part = stream.push(id);
      held += part.empty() ? 1 : 0;
      ASSERT_TRUE(is_utf8(part));
      whole += part;
    }
    whole += stream.finish();
    EXPECT_EQ(whole, replace_invalid_utf8(tokenizer->decode(ids))) << c.at("id");
  }
  EXPECT_GT(held, 0);
}

TEST(TokenizerVectors, FactsOfTheModel) {
  auto tokenizer = model_tokenizer();
  EXPECT_EQ(tokenizer->size(), 49152);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->end_of_generation(), (Ids{0, 2}));
  EXPECT_EQ(tokenizer->warning(), "");
  size_t longest = 0;
  int self = 0;
  for (int32_t id = 0; id < tokenizer->size(); ++id) {
    longest = std::max(longest, tokenizer->bytes(id).size());
    if (tokenizer->type(id) != TokenType::kNormal) continue;
    // Bytes that are not UTF-8 by themselves cannot come back as they are.
    self += tokenizer->encode(tokenizer->bytes(id)) == Ids{id} ? 1 : 0;
  }
  EXPECT_EQ(longest, 81u);
  EXPECT_GT(self, 48000);
  EXPECT_LE(self, 48822);
}

}  // namespace
}  // namespace tenon::pipelines
