// Kernels to machine code. The only folder that sees LLVM; no LLVM type leaves it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/kir/kernel.h"

namespace tenon::codegen {

// The levels of base/machine_levels.h, in their order.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512, kAvx512Dot, kAmx, kNeon };
inline constexpr size_t kIsaCount = 6;
std::string_view name(Isa isa);  // "baseline", "avx2", "avx512", "avx512dot", "amx", "neon"
// "x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4-dot", "x86-64-v4-amx", "aarch64"
std::string_view triple_level(Isa isa);
// The other way. Raises ValueError for an unknown level.
Isa isa_of_level(std::string_view level);
// Whether the level has fewer than 32 vector registers.
bool has_few_registers(Isa isa);
// The level with the fewest demands at which the kernel's code is the same as at `isa`.
Isa plainest(const kir::Kernel& kernel, Isa isa);

// A position-independent image: text and read-only data with all relocations applied between its
// own sections, nothing undefined. Mapped read-and-execute at any multiple of 64 bytes, its entry
// points are base + offsets[k], of type abi::KernelFn.
struct Image {
  std::vector<std::byte> bytes;   // may stand behind another image
  std::vector<uint64_t> offsets;  // one per kernel, in the order given
};

struct Options {
  Isa isa = Isa::kAvx512;
  bool optimize = true;             // the short pass list; off emits straight from the builder
  std::string* dump_ir = nullptr;   // receives LLVM IR text after optimisation
  std::string* dump_asm = nullptr;  // receives assembly text
};

// Compiles kernels (after expand_math or before: it is applied to a copy when needed). A kernel's
// `narrow` form is taken for targets with fewer than 32 vector registers or with 128-bit ones.
// Thread-safe. Raises InternalError when a kernel breaks kir rules (debug builds verify it whole),
// UnsupportedError when this build lacks the target.
//
// The code takes for granted what the run-time grants: buffers aligned to their element, and
// different buffers apart, except that a written buffer may be the memory of one that is read when
// each element is read before that element is written and by the same lane.
Image compile(std::span<const kir::Kernel* const> kernels, const Options& options);

}  // namespace tenon::codegen
