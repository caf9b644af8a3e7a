// Text of constants, shared by the printer and the parser.
#pragma once

#include <string>
#include <string_view>

#include "tenon/base/literal.h"

namespace tenon::ir {

// Element `i`: "true", "-3", the shortest decimal that reads back to the same bits, "inf", "nan",
// bits in hexadecimal for other NaNs, "(re, im)" for complex numbers.
std::string element_text(const Literal& literal, int64_t i);
// The shortest decimal that reads back to `value`, always told apart from an integer.
std::string float_text(double value);
// "text" with MLIR's escapes.
std::string quoted(std::string_view text);

enum class LiteralForm : uint8_t {
  kElide,   // over 16 elements: count, digest, first and last
  kFull,    // every element
  kDigest,  // over 16 elements: the digest alone
};
// `2.0 : f32`, `[1, 2] : tensor<[2], i32>`, `splat 0.0 : tensor<[1000], f32>`.
std::string literal_text(const Literal& literal, LiteralForm form);

// Reads one element into `literal`; false when `text` is not a value of its dtype. Complex numbers
// are read part by part: `part` 0 is the real one.
bool read_element(std::string_view text, Literal& literal, int64_t i, int part = 0);

}  // namespace tenon::ir
