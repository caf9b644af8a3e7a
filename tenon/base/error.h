// Errors that users see. Every refusal is one of the kinds below; the text follows one shape:
//
//   <op or function>: <what was expected, both values> [<constraint label>]
//     <details>
//     at <user file>:<line> in layer <path>
//     hint: <the way out>
//
// Libraries throw and never print; the edges (command line, C API, Python) translate kinds into
// their own language.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "tenon/base/api.h"

namespace tenon {

enum class ErrorKind : int {
  kValue = 1,    // a value outside what the function takes
  kType,         // a wrong type or dtype
  kShape,        // shapes or dimensions that do not fit; also a ValueError
  kIndex,        // an index out of range
  kKey,          // an unknown name
  kTrace,        // something that cannot be traced; also a TypeError
  kFormat,       // a file that is damaged, truncated or not of the expected format
  kIo,           // the operating system refused a file operation
  kUnsupported,  // right in principle, not available in this build or for this dtype
  kInternal,     // a bug in Tenon
};

// "ValueError", "ShapeError", … as users spell them.
TENON_API std::string_view error_kind_name(ErrorKind kind);

// Optional parts of an error. Empty members are left out of the text.
struct ErrorParts {
  std::string label = {};     // broken constraint, e.g. "matmul_c2"
  std::string location = {};  // "model.cpp:18 in layer model.layers.3.mlp"
  std::string hint = {};      // the way out
  std::string details = {};   // "a: f32[2, 3]   b: f32[4]": the operands, on a line of their own
};

class TENON_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, ErrorParts parts = {});

  ErrorKind kind() const { return kind_; }
  // The first line without label, location and hint.
  const std::string& message() const { return message_; }
  const ErrorParts& parts() const { return parts_; }

 private:
  ErrorKind kind_;
  std::string message_;
  ErrorParts parts_;
};

// One class per kind, so that callers can catch by type. `Base` is the class it also is.
template <ErrorKind K, class Base = Error>
class TENON_API ErrorOf : public Base {
 public:
  explicit ErrorOf(std::string message, ErrorParts parts = {})
      : Base(K, std::move(message), std::move(parts)) {}

 protected:
  ErrorOf(ErrorKind kind, std::string message, ErrorParts parts)
      : Base(kind, std::move(message), std::move(parts)) {}
  template <ErrorKind, class>
  friend class ErrorOf;
};

using ValueError = ErrorOf<ErrorKind::kValue>;
using TypeError = ErrorOf<ErrorKind::kType>;
using ShapeError = ErrorOf<ErrorKind::kShape, ValueError>;
using IndexError = ErrorOf<ErrorKind::kIndex>;
using KeyError = ErrorOf<ErrorKind::kKey>;
using TraceError = ErrorOf<ErrorKind::kTrace, TypeError>;
using FormatError = ErrorOf<ErrorKind::kFormat>;
using IoError = ErrorOf<ErrorKind::kIo>;
using UnsupportedError = ErrorOf<ErrorKind::kUnsupported>;
using InternalError = ErrorOf<ErrorKind::kInternal>;

// Throws the class of `kind`: for code that adds to an error, or that carries kinds as data.
[[noreturn]] TENON_API void throw_error(ErrorKind kind, std::string message, ErrorParts parts = {});

// Throws InternalError naming the place when `condition` does not hold: for invariants that only a
// bug in Tenon can break, never for user input.
TENON_API void check_internal(bool condition, std::string_view what,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace tenon
