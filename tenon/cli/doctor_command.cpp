// tenon doctor: what this machine offers, and what makes programs slow on it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tenon/cli/command.h"
#include "tenon/compiler/kernel_cache.h"
#include "tenon/runtime/cpu.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::cli {
namespace {

void row(const char* what, const std::string& text) { fmt::print("{:<16} {}\n", what, text); }
void advice(const std::string& text) { fmt::print("{:<16} → {}\n", "", text); }

std::string features(const runtime::CpuInfo& cpu) {
  std::string text;
  auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(cpu.avx2, "avx2");
  add(cpu.avx512, "avx512");
  add(cpu.avx512_bf16, "avx512_bf16");
  add(cpu.avx512_vnni, "avx512_vnni");
  add(cpu.avx512_fp16, "avx512_fp16");
  add(cpu.amx_tile, "amx_tile");
  add(cpu.amx_bf16, "amx_bf16");
  add(cpu.amx_int8, "amx_int8");
  return text.empty() ? "none beyond the baseline" : text;
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void report_huge_pages() {
  std::string setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  row("huge pages", setting.empty() ? "not offered by this kernel" : setting);
  if (setting.find("[never]") != std::string::npos) {
    advice("large results pay 0.7 ms per MB of fresh memory; enable madvise or always");
  }
}

void report_cache() {
  std::string folder = compiler::cache_folder();
  if (folder.empty()) {
    row("kernel cache", "off");
    advice("set TENON_CACHE_DIR to a folder: a warm first call takes 1 ms instead of 10 to 30");
    return;
  }
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    row("kernel cache", folder + " (made at the first compile)");
  } else if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    row("kernel cache", folder + " (not used)");
    advice("others can write there: chmod 700, or set TENON_CACHE_DIR");
  } else {
    row("kernel cache", folder);
  }
}

void run_doctor() {
  const runtime::CpuInfo& cpu = runtime::cpu_info();
  row("tenon", TENON_VERSION);
  row("cpu", cpu.model.empty() ? "unknown" : cpu.model);
  row("features", features(cpu));
  row("level",
      fmt::format("{} ({})", runtime::cpu_level(), runtime::short_name(runtime::cpu_level())));
  row("caches", fmt::format("{} KiB L1, {} KiB L2, {} KiB L3", cpu.l1_bytes >> 10,
                            cpu.l2_bytes >> 10, cpu.l3_bytes >> 10));
  row("threads", fmt::format("{}", runtime::thread_count()));
  if (runtime::thread_count() == 1)
    advice("one thread: TENON_NUM_THREADS, affinity or the control group says so");
  report_huge_pages();
  report_cache();
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command =
      add_command(app, "doctor", "Says what this machine offers and what is slow", "tenon doctor");
  command->callback(run_doctor);
}

}  // namespace tenon::cli
