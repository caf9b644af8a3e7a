// UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

inline constexpr uint32_t kReplacement = 0xfffd;

struct CodePoint {
  uint32_t value = 0;
  uint32_t bytes = 0;  // 0: the bytes here do not begin a well-formed sequence
};

// The code point at `at` < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);
void append_utf8(std::string& out, uint32_t code_point);
bool is_utf8(std::string_view text);
// Bytes at the end of `text` that begin a well-formed sequence which more bytes could complete: 0
// to 3.
size_t incomplete_utf8_tail(std::string_view text);
// Each byte that belongs to no well-formed sequence becomes U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace tenon
