// One line of progress on a terminal; nothing in a pipe.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // Redrawn when the percentage changes.
  void update(uint64_t done, uint64_t total);

 private:
  std::string what_;
  bool terminal_;
  int percent_ = -1;
};

}  // namespace tenon::cli
