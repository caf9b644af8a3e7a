#include "tenon/frontend/recompile.h"

#include <cstdlib>
#include <string_view>

#include "tenon/base/error.h"

namespace tenon {
namespace {
thread_local int scopes = 0;
}  // namespace

FailOnRecompile::FailOnRecompile() { ++scopes; }
FailOnRecompile::~FailOnRecompile() { --scopes; }

bool recompile_fails() {
  const char* text = std::getenv("TENON_FAIL_ON_RECOMPILE");
  const bool by_environment = text != nullptr && *text != '\0' && std::string_view(text) != "0";
  return by_environment || scopes > 0;
}

void refuse_recompile(const std::string& function, const std::string& why) {
  throw ValueError(
      function + ": the call would compile another program",
      {.label = "recompile",
       .hint = "declare sizes that vary by a name, as in compile(fn)(TensorLayout(f32, "
               "{\"batch\"})), and pass values that vary as tensors",
       .details = why});
}

}  // namespace tenon
