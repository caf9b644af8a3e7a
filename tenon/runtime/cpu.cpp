#include "tenon/runtime/cpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/machine_levels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

namespace tenon::runtime {
namespace {

const MachineLevel* find_level(std::string_view name) {
  for (const MachineLevel& level : kMachineLevels) {
    if (level.name == name || level.brief == name) return &level;
  }
  return nullptr;
}

#if defined(__x86_64__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t sub = 0) {
  Registers r;
  __get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool bit(uint32_t word, int index) { return (word >> index & 1u) != 0; }

uint64_t xcr0() {
  uint32_t lo = 0, hi = 0;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return static_cast<uint64_t>(hi) << 32 | lo;
}

// Cache sizes from the deterministic cache parameters (Intel leaf 4, AMD leaf 0x8000001d: same
// layout).
void read_caches(uint32_t leaf, CpuInfo& info) {
  for (uint32_t sub = 0; sub < 16; ++sub) {
    Registers r = cpuid(leaf, sub);
    uint32_t type = r.a & 31u;
    if (type == 0) return;
    if (type == 2) continue;  // instructions
    int64_t line = (r.b & 0xfffu) + 1, partitions = (r.b >> 12 & 0x3ffu) + 1;
    int64_t ways = (r.b >> 22) + 1, sets = static_cast<int64_t>(r.c) + 1;
    int64_t bytes = line * partitions * ways * sets;
    switch (r.a >> 5 & 7u) {
      case 1: info.l1_bytes = bytes; break;
      case 2: info.l2_bytes = bytes; break;
      case 3: info.l3_bytes = bytes; break;
      default: break;
    }
  }
}

// The kernel saves tiles only for processes that have asked, once, for all their threads.
bool ask_for_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuInfo detect() {
  CpuInfo info;
  Registers zero = cpuid(0);
  char vendor[12];
  std::memcpy(vendor, &zero.b, 4);
  std::memcpy(vendor + 4, &zero.d, 4);
  std::memcpy(vendor + 8, &zero.c, 4);
  info.vendor.assign(vendor, 12);
  uint32_t extended = cpuid(0x80000000u).a;
  if (extended >= 0x80000004u) {
    char brand[48];
    for (uint32_t i = 0; i < 3; ++i) {
      Registers r = cpuid(0x80000002u + i);
      std::memcpy(brand + 16 * i, &r, 16);
    }
    info.model.assign(brand, strnlen(brand, sizeof brand));
    info.model.erase(info.model.find_last_not_of(' ') + 1);
  }
  bool amd = info.vendor == "AuthenticAMD";
  if (amd && extended >= 0x8000001du && bit(cpuid(0x80000001u).c, 22)) {
    read_caches(0x8000001du, info);
  } else if (zero.a >= 4) {
    read_caches(4, info);
  }

  Registers one = cpuid(1);
  bool osxsave = bit(one.c, 27);
  uint64_t state = osxsave ? xcr0() : 0;
  bool ymm = (state & 0x6u) == 0x6u;
  bool zmm = (state & 0xe6u) == 0xe6u;
  bool tiles = (state & 0x60000u) == 0x60000u;
  if (zero.a < 7) return info;
  Registers seven = cpuid(7), seven_one = cpuid(7, 1);
  Registers ext = extended >= 0x80000001u ? cpuid(0x80000001u) : Registers{};
  info.avx2 = ymm && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(one.c, 22) &&
              bit(seven.b, 5) && bit(seven.b, 3) && bit(seven.b, 8) && bit(ext.c, 5);
  info.avx512 = info.avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 28) &&
                bit(seven.b, 30) && bit(seven.b, 31);
  info.avx512_vnni = info.avx512 && bit(seven.c, 11);
  info.avx512_bf16 = info.avx512 && bit(seven_one.a, 5);
  info.avx512_fp16 = info.avx512 && bit(seven.d, 23);
  info.amx_tile = tiles && bit(seven.d, 24) && ask_for_tiles();
  info.amx_bf16 = info.amx_tile && bit(seven.d, 22);
  info.amx_int8 = info.amx_tile && bit(seven.d, 25);
  return info;
}

std::vector<std::string> all_usable() {
  std::vector<std::string> levels;
  const bool dots = cpu_info().avx512_vnni && cpu_info().avx512_bf16;
  if (dots && cpu_info().amx_bf16 && cpu_info().amx_int8) levels.emplace_back("x86-64-v4-amx");
  if (dots) levels.emplace_back("x86-64-v4-dot");
  if (cpu_info().avx512) levels.emplace_back("x86-64-v4");
  if (cpu_info().avx2) levels.emplace_back("x86-64-v3");
  levels.emplace_back("x86-64");
  return levels;
}

#else

CpuInfo detect() {
  CpuInfo info;
  auto read = [](int name, int64_t& bytes) {
    long value = ::sysconf(name);
    if (value > 0) bytes = value;
  };
  read(_SC_LEVEL1_DCACHE_SIZE, info.l1_bytes);
  read(_SC_LEVEL2_CACHE_SIZE, info.l2_bytes);
  read(_SC_LEVEL3_CACHE_SIZE, info.l3_bytes);
  return info;
}

std::vector<std::string> all_usable() {
#if defined(__aarch64__)
  return {"aarch64"};
#else
  return {};
#endif
}

#endif

}  // namespace

const CpuInfo& cpu_info() {
  static const CpuInfo info = detect();
  return info;
}

std::vector<std::string> usable_levels() {
  std::vector<std::string> all = all_usable();
  const char* forced = std::getenv("TENON_ISA");
  if (forced == nullptr || *forced == '\0') return all;
  const MachineLevel* level = find_level(forced);
  if (level == nullptr) {
    throw ValueError(
        fmt::format("TENON_ISA={}: not a level", forced),
        {.label = "cpu_level", .hint = "one of baseline, avx2, avx512, avx512dot, amx"});
  }
  if (std::find(all.begin(), all.end(), level->name) == all.end()) {
    throw UnsupportedError(fmt::format("TENON_ISA={}: this CPU ({}) does not run {}", forced,
                                       cpu_info().model, level->name),
                           {.label = "cpu_level"});
  }
  std::vector<std::string> levels;
  for (; level != nullptr; level = find_level(level->adds_to)) levels.emplace_back(level->name);
  return levels;
}

std::string cpu_level() {
  std::vector<std::string> levels = usable_levels();
  if (levels.empty()) {
    throw UnsupportedError("this CPU's instruction set has no code generation",
                           {.label = "cpu_level"});
  }
  return levels.front();
}

std::string_view short_name(std::string_view level) {
  const MachineLevel* known = find_level(level);
  return known == nullptr ? level : known->brief;
}

}  // namespace tenon::runtime
