// A place in the user's program, taken where a function with a `Here at = Here::current()` default
// is called.
#pragma once

#include <version>

#ifdef __cpp_lib_source_location
#include <source_location>
namespace tenon {
using Here = std::source_location;
}
#else
#include <cstdint>
namespace tenon {
class Here {
 public:
  static constexpr Here current(const char* file = __builtin_FILE(),
                                uint32_t line = __builtin_LINE()) {
    Here here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }
  constexpr uint32_t column() const { return 0; }

 private:
  const char* file_ = "";
  uint32_t line_ = 0;
};
}  // namespace tenon
#endif
