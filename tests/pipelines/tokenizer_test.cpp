#include "tenon/pipelines/tokenizer.h"

#include <gtest/gtest.h>

#include <functional>

#include "tenon/base/error.h"
#include "tenon/formats/gguf_writer.h"

namespace tenon::pipelines {
namespace {

using Ids = std::vector<int32_t>;

// A small vocabulary: a b c, space (in the alphabet's spelling), merges ab, abc, " a".
struct Vocabulary {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  std::vector<std::string> tokens = {"<s>",
                                     "a",
                                     "b",
                                     "c",
                                     "\xc4\xa0",
                                     "ab",
                                     "abc",
                                     "\xc4\xa0"
                                     "a",
                                     "<x>",
                                     "<x><y>"};
  std::vector<int32_t> types = {3, 1, 1, 1, 1, 1, 1, 1, 4, 3};
  std::vector<std::string> merges = {"a b", "ab c", "\xc4\xa0 a"};
  std::function<void(formats::GgufWriter&)> more = [](formats::GgufWriter&) {};

  std::shared_ptr<const Tokenizer> load() const {
    formats::GgufWriter writer;
    writer.set_string("tokenizer.ggml.model", model);
    if (!pre.empty()) writer.set_string("tokenizer.ggml.pre", pre);
    writer.set_strings("tokenizer.ggml.tokens", tokens);
    writer.set_i32s("tokenizer.ggml.token_type", types);
    writer.set_strings("tokenizer.ggml.merges", merges);
    more(writer);
    std::vector<std::byte> bytes = writer.bytes();
    return Tokenizer::from_gguf(*formats::GgufFile::parse(bytes, "v.gguf"));
  }
};

TEST(Tokenizer, MergesByRankLeftmostFirst) {
  auto t = Vocabulary().load();
  EXPECT_EQ(t->encode("abc"), (Ids{6}));
  EXPECT_EQ(t->encode("ab abab"), (Ids{5, 4, 5, 5}));  // "a b" ranks before " a"
  EXPECT_EQ(t->encode(" a"), (Ids{7}));
  EXPECT_EQ(t->encode(""), Ids{});
  EXPECT_EQ(t->encode("a!b"), (Ids{1, 2}));  // no token for the byte
  Vocabulary v;
  v.tokens = {"a", "aa", "aaaa"};
  v.types = {1, 1, 1};
  v.merges = {"a a", "aa aa"};
  EXPECT_EQ(v.load()->encode("aaaaa"), (Ids{2, 0}));
  EXPECT_EQ(v.load()->encode(std::string(100000, 'a')).size(), 25000u);
}

TEST(Tokenizer, SpecialTokensOnAndOff) {
  auto t = Vocabulary().load();
  EXPECT_EQ(t->encode("<s>"), Ids{});  // none of its bytes has a token
  EXPECT_EQ(t->encode("a<s>b", {.parse_special = true}), (Ids{1, 0, 2}));
  EXPECT_EQ(t->encode("a<x>b"), (Ids{1, 8, 2}));                      // user-defined always
  EXPECT_EQ(t->encode("<x><y>", {.parse_special = true}), (Ids{9}));  // the longer wins
  EXPECT_EQ(t->decode(Ids{0, 6, 8}), "<s>abc<x>");
  EXPECT_EQ(t->decode(Ids{0, 6, 8}, false), "abc<x>");
  EXPECT_THROW(t->decode(Ids{10}), IndexError);
  EXPECT_THROW(t->bytes(-1), IndexError);
}

TEST(Tokenizer, AddsBeginAndEndWhereTheFileSays) {
  Vocabulary v;
  v.more = [](formats::GgufWriter& w) {
    w.set_u32("tokenizer.ggml.bos_token_id", 0);
    w.set_u32("tokenizer.ggml.eos_token_id", 9);
    w.set_bool("tokenizer.ggml.add_bos_token", true);
    w.set_bool("tokenizer.ggml.add_eos_token", true);
  };
  auto t = v.load();
  EXPECT_EQ(t->encode("a"), (Ids{1}));
  EXPECT_EQ(t->encode("a", {.add_special = true}), (Ids{0, 1, 9}));
  EXPECT_EQ(t->end_of_generation(), (Ids{9}));
  v.pre = "";
  EXPECT_EQ(v.load()->warning(),
            "v.gguf: tokenizer.ggml.pre is missing, texts are cut by the rules of gpt-2");
}

TEST(Tokenizer, StreamHoldsBackParts) {
  Vocabulary v;
  v.tokens = {"\xc3\xa2", "\xc4\xa4", "\xc2\xac", "a"};  // E2, 82, AC in the alphabet's spelling
  v.types = {1, 1, 1, 1};
  v.merges = {};
  auto t = v.load();
  ASSERT_EQ(t->encode("\xe2\x82\xac"
                      "a"),
            (Ids{0, 1, 2, 3}));
  TextStream stream(t);
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(2), "\xe2\x82\xac");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(3),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, RefusesDamagedVocabularies) {
  struct Case {
    std::function<void(Vocabulary&)> damage;
    const char* text;
  } cases[] = {
      {[](auto& v) { v.model = "llama"; },
       "v.gguf: tokeniser \"llama\" is not supported, only byte-level BPE is (\"gpt2\")"},
      {[](auto& v) { v.pre = "new"; },
       "v.gguf: tokenizer.ggml.pre \"new\" is not known, so texts would be cut wrongly"},
      {[](auto& v) { v.types.pop_back(); }, "v.gguf: 9 token types for 10 tokens"},
      {[](auto& v) { v.types[1] = 7; }, "v.gguf: token 1 has the unknown type 7"},
      {[](auto& v) { v.tokens[1] = ""; }, "v.gguf: token 1 is empty"},
      {[](auto& v) { v.tokens[2] = "a"; }, "v.gguf: tokens 1 and 2 are the same"},
      {[](auto& v) { v.types[1] = 6; }, "v.gguf: byte token 1 is not spelled <0xHH>"},
      {[](auto& v) { v.merges[0] = "ab"; },
       "v.gguf: merge 0 is not two pieces with a space between"},
      {[](auto& v) { v.merges[0] = "a "; },
       "v.gguf: merge 0 is not two pieces with a space between"},
      {[](auto& v) { v.merges[1] = "a z"; },
       "v.gguf: merge 1 names a piece that is not in the vocabulary"},
      {[](auto& v) { v.more = [](auto& w) { w.set_u32("tokenizer.ggml.eos_token_id", 10); }; },
       "v.gguf: key tokenizer.ggml.eos_token_id is 10, outside the vocabulary of 10 tokens"},
      {[](auto& v) { v.more = [](auto& w) { w.set_bool("tokenizer.ggml.add_bos_token", true); }; },
       "v.gguf: a begin token is to be added and none is named"},
      {[](auto& v) { v.more = [](auto& w) {
                       w.set_f32s("tokenizer.ggml.scores", {1, 2});
                     }; },
       "v.gguf: 2 token scores for 10 tokens"},
  };
  for (const Case& c : cases) {
    Vocabulary v;
    c.damage(v);
    try {
      v.load();
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), c.text);
    }
  }
}

}  // namespace
}  // namespace tenon::pipelines
