// The levels of machine code: what a compiled kernel asks of a CPU.
#pragma once

#include <array>
#include <string_view>

namespace tenon {

struct MachineLevel {
  std::string_view name;   // in files and calls
  std::string_view brief;  // what users call it
  // The level that this one adds instructions to: code that gains nothing from them is compiled
  // for that level and serves both. Empty: none.
  std::string_view adds_to;
};

// Of each processor family the plainest first.
inline constexpr std::array<MachineLevel, 6> kMachineLevels = {{
    {"x86-64", "baseline", ""},
    {"x86-64-v3", "avx2", ""},
    {"x86-64-v4", "avx512", ""},
    {"x86-64-v4-dot", "avx512dot", "x86-64-v4"},
    {"x86-64-v4-amx", "amx", "x86-64-v4-dot"},
    {"aarch64", "neon", ""},
}};

}  // namespace tenon
