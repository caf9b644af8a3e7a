#include "tenon/base/error.h"

#include <utility>

namespace tenon {
namespace {

std::string compose(const std::string& message, const ErrorParts& parts) {
  std::string text = message;
  if (!parts.label.empty()) text += fmt::format(" [{}]", parts.label);
  if (!parts.details.empty()) text += "\n  " + parts.details;
  if (!parts.location.empty()) text += "\n  at " + parts.location;
  if (!parts.hint.empty()) text += "\n  hint: " + parts.hint;
  return text;
}

}  // namespace

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kValue: return "ValueError";
    case ErrorKind::kType: return "TypeError";
    case ErrorKind::kShape: return "ShapeError";
    case ErrorKind::kIndex: return "IndexError";
    case ErrorKind::kKey: return "KeyError";
    case ErrorKind::kTrace: return "TraceError";
    case ErrorKind::kFormat: return "FormatError";
    case ErrorKind::kIo: return "IoError";
    case ErrorKind::kUnsupported: return "UnsupportedError";
    case ErrorKind::kInternal: return "InternalError";
  }
  return "Error";
}

Error::Error(ErrorKind kind, std::string message, ErrorParts parts)
    : std::runtime_error(compose(message, parts)),
      kind_(kind),
      message_(std::move(message)),
      parts_(std::move(parts)) {}

void throw_error(ErrorKind kind, std::string message, ErrorParts parts) {
  switch (kind) {
    case ErrorKind::kValue: throw ValueError(std::move(message), std::move(parts));
    case ErrorKind::kType: throw TypeError(std::move(message), std::move(parts));
    case ErrorKind::kShape: throw ShapeError(std::move(message), std::move(parts));
    case ErrorKind::kIndex: throw IndexError(std::move(message), std::move(parts));
    case ErrorKind::kKey: throw KeyError(std::move(message), std::move(parts));
    case ErrorKind::kTrace: throw TraceError(std::move(message), std::move(parts));
    case ErrorKind::kFormat: throw FormatError(std::move(message), std::move(parts));
    case ErrorKind::kIo: throw IoError(std::move(message), std::move(parts));
    case ErrorKind::kUnsupported: throw UnsupportedError(std::move(message), std::move(parts));
    case ErrorKind::kInternal: break;
  }
  throw InternalError(std::move(message), std::move(parts));
}

void check_internal(bool condition, std::string_view what, const char* file, int line) {
  if (!condition) throw InternalError(fmt::format("internal: {} ({}:{})", what, file, line));
}

}  // namespace tenon
