#include "tenon/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace tenon::cli {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && percent_ >= 0) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const int percent = static_cast<int>(done * 100 / total);
  if (percent == percent_) return;
  percent_ = percent;
  constexpr int kWidth = 30;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3} %", what_, "", filled, "", kWidth - filled,
             percent);
  std::fflush(stderr);
}

}  // namespace tenon::cli
