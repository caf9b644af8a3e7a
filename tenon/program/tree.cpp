#include "tenon/program/tree.h"

#include <mutex>
#include <set>
#include <unordered_map>

#include "tenon/base/of_thread.h"

namespace tenon::program {
namespace {

// Kept for good: views of it are in calls.
std::string_view kept_text(int64_t key) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  std::lock_guard lock(mutex);
  return *texts.insert(std::to_string(key)).first;
}

}  // namespace

std::string_view key_text(int64_t key) {
  using Known = std::unordered_map<int64_t, std::string_view>;
  Known* known = of_thread<Known>();
  if (known == nullptr) return kept_text(key);
  const auto found = known->find(key);
  return found != known->end() ? found->second : known->emplace(key, kept_text(key)).first->second;
}

}  // namespace tenon::program
