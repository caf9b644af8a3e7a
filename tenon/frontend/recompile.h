// Compiling the same function again is seldom meant: why it happened, and a switch that refuses it.
#pragma once

#include <string>

#include "tenon/frontend/here.h"

namespace tenon {

// While a scope stands on this thread, or TENON_FAIL_ON_RECOMPILE is set (and not 0), or the
// function's CompileOptions say so, a call that no kept program serves raises ValueError
// [recompile] telling why. A function's first program is compiled all the same, and so is what is
// compiled from declarations.
class FailOnRecompile {
 public:
  FailOnRecompile();
  ~FailOnRecompile();
  FailOnRecompile(const FailOnRecompile&) = delete;
  FailOnRecompile& operator=(const FailOnRecompile&) = delete;
};
bool recompile_fails();

// Raises that error. `why`: one line, as CompiledFunction::last_miss() gives it.
[[noreturn]] void refuse_recompile(const std::string& function, const std::string& why);

}  // namespace tenon
