#include "tenon/runtime/cpu_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace tenon::runtime {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

int affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// The quota of one folder of the second version of control groups: CPUs, or 0 for no limit.
double quota_of(const std::string& folder) {
  File file(std::fopen((folder + "/cpu.max").c_str(), "re"));
  double quota = 0, period = 0;
  if (!file || std::fscanf(file.get(), "%lf %lf", &quota, &period) != 2) return 0;
  return period > 0 ? quota / period : 0;
}

// The smallest quota from this process's group up to the root.
double group_quota() {
  File file(std::fopen("/proc/self/cgroup", "re"));
  char line[4096];
  double least = 0;
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::strncmp(line, "0::", 3) != 0) continue;
    std::string path(line + 3);
    path.erase(path.find_last_not_of('\n') + 1);
    while (true) {
      double quota = quota_of("/sys/fs/cgroup" + path);
      if (quota > 0 && (least == 0 || quota < least)) least = quota;
      size_t slash = path.find_last_of('/');
      if (slash == std::string::npos) break;
      path.erase(slash);
    }
  }
  return least;
}

}  // namespace

int available_cpus() {
  int cpus = affinity_cpus();
  double quota = group_quota();
  if (quota > 0) cpus = std::min(cpus, std::max(1, static_cast<int>(std::ceil(quota))));
  return cpus;
}

}  // namespace tenon::runtime
