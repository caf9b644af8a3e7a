// The whole text of the error that `work` raises, with its kind.
#pragma once

#include <functional>
#include <string>

#include "tenon/base/error.h"

namespace tenon {

inline std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(error_kind_name(error.kind())) + ": " + error.what();
  }
  return "ran";
}

}  // namespace tenon
