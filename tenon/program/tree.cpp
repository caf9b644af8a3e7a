#include "tenon/program/tree.h"

#include <mutex>
#include <set>

namespace tenon::program {

std::string_view key_text(int64_t key) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  std::lock_guard lock(mutex);
  return *texts.insert(std::to_string(key)).first;
}

}  // namespace tenon::program
