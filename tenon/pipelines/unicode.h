// The classes of code points that pre-tokenisers tell apart.
#pragma once

#include <cstdint>

namespace tenon::pipelines {

enum class CharKind : uint8_t { kOther, kLetter, kNumber, kSpace };

// \p{L}, \p{N} and White_Space of Unicode 15.0; marks, symbols and unassigned code points are
// kOther.
CharKind char_kind(uint32_t code_point);

}  // namespace tenon::pipelines
