#include "tenon/base/utf8.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Utf8, EveryCodePointReadsBack) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(text, c);
    CodePoint back = decode_utf8(text, 0);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(back.bytes, text.size());
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(incomplete_utf8_tail(text), 0u) << c;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(decode_utf8(text.substr(0, cut), 0).bytes, 0u);
      ASSERT_EQ(incomplete_utf8_tail("a" + text.substr(0, cut)), cut) << c;
    }
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "a\xe2\x28"}) {
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
  }
  // What more bytes cannot mend is not a tail to wait for.
  for (const char* text :
       {"\x80", "\xc0", "\xf5", "\xe0\x80", "\xed\xa0", "\xf4\x90", "abc", "\xe2\x82\x20"}) {
    EXPECT_EQ(incomplete_utf8_tail(text), 0u) << testing::PrintToString(text);
  }
  EXPECT_EQ(replace_invalid_utf8("a\xe2\x82"
                                 "b\xff\xc3\xa9"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b\xef\xbf\xbd\xc3\xa9");
  EXPECT_EQ(replace_invalid_utf8(""), "");
}

}  // namespace
}  // namespace tenon
