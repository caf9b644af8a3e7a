#include "tenon/pipelines/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace tenon::pipelines {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
  CharKind kind;
};

constexpr CharKind kLetter = CharKind::kLetter;
constexpr CharKind kNumber = CharKind::kNumber;
constexpr CharKind kSpace = CharKind::kSpace;

constexpr Range kRanges[] = {
#include "tenon/pipelines/unicode_ranges.inc"
};

constexpr CharKind search(uint32_t c) {
  const Range* it =
      std::upper_bound(std::begin(kRanges), std::end(kRanges), c,
                       [](uint32_t value, const Range& r) { return value < r.first; });
  if (it == std::begin(kRanges)) return CharKind::kOther;
  --it;
  return c <= it->last ? it->kind : CharKind::kOther;
}

constexpr auto kAscii = [] {
  std::array<CharKind, 128> out{};
  for (uint32_t c = 0; c < 128; ++c) out[c] = search(c);
  return out;
}();

}  // namespace

CharKind char_kind(uint32_t c) { return c < 128 ? kAscii[c] : search(c); }

}  // namespace tenon::pipelines
