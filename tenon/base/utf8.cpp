#include "tenon/base/utf8.h"

#include <algorithm>

namespace tenon {
namespace {

uint8_t byte_at(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the sequence that `lead` begins; 0 for a byte that begins none.
uint32_t length_of(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

// The range of the second byte excludes overlong forms, surrogates and what is above U+10FFFF.
bool second_is_valid(uint8_t lead, uint8_t second) {
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

// How many bytes from `at` agree with one well-formed sequence, at most its length.
uint32_t valid_prefix(std::string_view text, size_t at, uint32_t length) {
  uint32_t have = 1;
  while (have < length && at + have < text.size()) {
    uint8_t byte = byte_at(text, at + have);
    bool valid = have == 1 ? second_is_valid(byte_at(text, at), byte) : (byte & 0xc0) == 0x80;
    if (!valid) break;
    ++have;
  }
  return have;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  uint8_t lead = byte_at(text, at);
  uint32_t length = length_of(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || valid_prefix(text, at, length) < length) return {};
  uint32_t value = lead & (0x7fu >> length);
  for (uint32_t i = 1; i < length; ++i) value = value << 6 | (byte_at(text, at + i) & 0x3f);
  return {value, length};
}

void append_utf8(std::string& out, uint32_t c) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decode_utf8(text, at);
    if (c.bytes == 0) return false;
    at += c.bytes;
  }
  return true;
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    size_t at = text.size() - back;
    uint32_t length = length_of(byte_at(text, at));
    if (length <= 1) {
      if ((byte_at(text, at) & 0xc0) == 0x80) continue;
      return 0;
    }
    return back < length && valid_prefix(text, at, length) == back ? back : 0;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decode_utf8(text, at);
    if (c.bytes == 0) {
      append_utf8(out, kReplacement);
      ++at;
    } else {
      out += text.substr(at, c.bytes);
      at += c.bytes;
    }
  }
  return out;
}

}  // namespace tenon
