// Where a test finds its files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace tenon {

// The project's own file or folder `path`, given from the root of the source tree. ctest sets the
// root; by hand, tests run in it.
inline std::string source_path(const std::string& path) {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  return (root != nullptr ? std::string(root) + "/" : std::string()) + path;
}

// What the environment variable names, else the project's own copy.
inline std::string data_path(const char* variable, const std::string& own) {
  const char* given = std::getenv(variable);
  return given != nullptr && *given != '\0' ? given : source_path(own);
}

// The demo's language model. A test that needs it fails where it is missing.
inline std::string model_path() {
  std::string path = data_path("TENON_MODEL", "build/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("the model " + path + " is missing: run ./dev model");
  }
  return path;
}

}  // namespace tenon
