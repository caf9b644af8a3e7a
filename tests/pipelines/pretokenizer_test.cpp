// The hand-written scanners against PCRE2 running the patterns that models are trained with.
#include "tenon/pipelines/pretokenizer.h"

#include <gtest/gtest.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "tenon/base/utf8.h"
#include "tenon/pipelines/unicode.h"

namespace tenon::pipelines {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The folding of K and long s outside ASCII is not part of the English contractions.
constexpr const char* kLlama3 =
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class Pattern {
 public:
  explicit Pattern(const char* text) {
    int error;
    PCRE2_SIZE where;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP, &error, &where, nullptr);
    EXPECT_NE(code_, nullptr);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Pattern() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Words split(const std::string& text) const {
    Words out;
    for (size_t at = 0; at < text.size();) {
      int rc = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                           PCRE2_ANCHORED, match_, nullptr);
      EXPECT_GT(rc, 0);
      if (rc <= 0) break;
      PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_);
      out.push_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    return out;
  }

 private:
  pcre2_code* code_;
  pcre2_match_data* match_;
};

Words split(Pretokenizer kind, std::string_view text) {
  Words out;
  pretokenize(kind, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

Words digits_then_gpt2(const std::string& text) {
  static const Pattern number(R"(\p{N}|[^\p{N}]+)");
  static const Pattern gpt2(kGpt2);
  Words out;
  for (const std::string& piece : number.split(text)) {
    Words words = gpt2.split(piece);
    out.insert(out.end(), words.begin(), words.end());
  }
  return out;
}

// Texts that are dense in what the rules tell apart.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts = {" ",
                                                  "  ",
                                                  "\n",
                                                  "\r\n",
                                                  "\t",
                                                  "'s",
                                                  "'S",
                                                  "'re",
                                                  "'LL",
                                                  "'",
                                                  "a",
                                                  "Zebra",
                                                  "\xc3\xa9",
                                                  "e\xcc\x81",
                                                  "7",
                                                  "1234",
                                                  "\xd9\xa3",
                                                  "\xe2\x85\xa7",
                                                  "!",
                                                  "...",
                                                  "\xf0\x9f\x98\x80",
                                                  "\xc2\xa0",
                                                  "\xe2\x80\x89",
                                                  "\xe3\x80\x80",
                                                  "\xe4\xb8\xad",
                                                  "_",
                                                  "\xe2\x80\x8b",
                                                  "\xc2\x85",
                                                  "\xef\xbb\xbf"};
  std::string out;
  for (size_t n = random() % 24; n > 0; --n) out += kParts[random() % kParts.size()];
  return out;
}

TEST(Pretokenizer, CutsAsThePatterns) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Pattern gpt2(kGpt2), llama3(kLlama3);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_text(random);
    ASSERT_EQ(split(Pretokenizer::kGpt2, text), gpt2.split(text)) << text;
    ASSERT_EQ(split(Pretokenizer::kLlama3, text), llama3.split(text)) << text;
    ASSERT_EQ(split(Pretokenizer::kDigitsGpt2, text), digits_then_gpt2(text)) << text;
  }
}

TEST(Pretokenizer, StretchEndsCountAsTheEnd) {
  EXPECT_EQ(split(Pretokenizer::kDigitsGpt2, "a  1"), (Words{"a", "  ", "1"}));
  EXPECT_EQ(split(Pretokenizer::kGpt2, "a  1"), (Words{"a", " ", " 1"}));
  EXPECT_EQ(split(Pretokenizer::kLlama3, "x \n\n  y"), (Words{"x", " \n\n", " ", " y"}));
  EXPECT_EQ(split(Pretokenizer::kGpt2, ""), Words{});
}

// The tables are of a newer Unicode than PCRE2's, so only its assigned code points are compared.
TEST(Pretokenizer, ClassesAgreeWithPcre) {
  int error;
  PCRE2_SIZE where;
  auto compile = [&](const char* text) {
    return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP, &error, &where, nullptr);
  };
  pcre2_code* codes[] = {compile(R"(\p{Cn})"), compile(R"(\p{L})"), compile(R"(\p{N})"),
                         compile(R"(\s)")};
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  int differences = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(text, c);
    auto is = [&](int i) {
      return pcre2_match(codes[i], reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                         PCRE2_ANCHORED, match, nullptr) > 0;
    };
    CharKind kind = is(1)   ? CharKind::kLetter
                    : is(2) ? CharKind::kNumber
                    : is(3) ? CharKind::kSpace
                            : CharKind::kOther;
    // PCRE2 keeps U+180E, which was a space in old versions of Unicode, among the spaces.
    if (char_kind(c) != kind && !is(0) && c != 0x180e) {
      ++differences;
      ADD_FAILURE() << std::hex << c;
    }
    if (differences > 10) break;
  }
  pcre2_match_data_free(match);
  for (pcre2_code* code : codes) pcre2_code_free(code);
}

TEST(Pretokenizer, LongRunsTakeLinearTimeAndNoStack) {
  for (const char* unit : {"a", " ", "\n", "!", "7", "\xe4\xb8\xad", "'s", " \n"}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    for (Pretokenizer kind :
         {Pretokenizer::kGpt2, Pretokenizer::kLlama3, Pretokenizer::kDigitsGpt2}) {
      auto start = std::chrono::steady_clock::now();
      size_t bytes = 0;
      pretokenize(kind, text, [&](std::string_view word) { bytes += word.size(); });
      EXPECT_EQ(bytes, text.size());
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << unit;
    }
  }
}

}  // namespace
}  // namespace tenon::pipelines
