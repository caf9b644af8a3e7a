// What the CPU that runs can do, and which machine code fits it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::runtime {

struct CpuInfo {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", …; empty where unknown
  std::string model;   // the brand string
  // Features that the operating system lets programs use (vector state saved: XCR0).
  bool avx2 = false;    // AVX2, FMA, BMI1, BMI2, F16C, LZCNT, MOVBE: x86-64-v3
  bool avx512 = false;  // AVX-512 F, BW, CD, DQ, VL on top: x86-64-v4
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  bool avx512_fp16 = false;
  bool amx_tile = false;  // and the kernel has granted this process tiles
  bool amx_bf16 = false;
  bool amx_int8 = false;
  // Data caches that one core sees, bytes.
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 8 << 20;
};
const CpuInfo& cpu_info();

// Levels of machine code this CPU runs, best first: "x86-64-v4-amx" (v4-dot with AMX tiles of bf16
// and int8, where the kernel grants them), "x86-64-v4-dot" (v4 with AVX-512 VNNI and BF16),
// "x86-64-v4", "x86-64-v3", "x86-64"; "aarch64" there.
// TENON_ISA=baseline|avx2|avx512|avx512dot|amx (or a level's name) leaves the forced level alone,
// amx and avx512dot with those that they add to: raises UnsupportedError naming the CPU when it
// lacks it, ValueError for an unknown word.
std::vector<std::string> usable_levels();
// The best of usable_levels(): what to compile for when nothing is asked for.
std::string cpu_level();
// "amx", "avx512dot", "avx512", "avx2", "baseline", "neon": what users call a level; the level
// itself if unknown.
std::string_view short_name(std::string_view level);

}  // namespace tenon::runtime
