#include "tenon/codegen/target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>

#include <array>
#include <memory>
#include <mutex>

#include "tenon/base/error.h"

namespace tenon::codegen {
namespace {

constexpr const char* kX86Triple = "x86_64-unknown-linux-gnu";

// The tuning is that of a recent core; the instruction set is the level's alone.
constexpr std::array<Target, 4> kTargets = {{
    {.isa = Isa::kBaseline,
     .vector_bits = 128,
     .vector_regs = 16,
     .has_fma = false,
     .has_f16c = false,
     .has_round = false,
     .has_masks = false,
     .has_masks32 = false,
     .is_arm = false,
     .triple = kX86Triple,
     .cpu = "x86-64",
     .features = ""},
    {.isa = Isa::kAvx2,
     .vector_bits = 256,
     .vector_regs = 16,
     .has_fma = true,
     .has_f16c = true,
     .has_round = true,
     .has_masks = false,
     .has_masks32 = true,
     .is_arm = false,
     .triple = kX86Triple,
     .cpu = "x86-64-v3",
     .features = ""},
    {.isa = Isa::kAvx512,
     .vector_bits = 512,
     .vector_regs = 32,
     .has_fma = true,
     .has_f16c = true,
     .has_round = true,
     .has_masks = true,
     .has_masks32 = true,
     .is_arm = false,
     .triple = kX86Triple,
     .cpu = "x86-64-v4",
     .features = "-prefer-256-bit"},
    {.isa = Isa::kNeon,
     .vector_bits = 128,
     .vector_regs = 32,
     .has_fma = true,
     .has_f16c = true,
     .has_round = true,
     .has_masks = false,
     .has_masks32 = false,
     .is_arm = true,
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .features = "-outline-atomics"},
}};

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  initialize_targets();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) {
    throw UnsupportedError(fmt::format(
        "codegen: this build's LLVM lacks the target of level {}: {}", name(target.isa), error));
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EnableMachineFunctionSplitter = false;
  // AArch64's small model addresses by 4 KiB pages, so its code would stand at page boundaries
  // only.
  const auto model = target.isa == Isa::kNeon ? llvm::CodeModel::Tiny : llvm::CodeModel::Small;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(target.triple, target.cpu, target.features, options,
                                 llvm::Reloc::PIC_, model, llvm::CodeGenOptLevel::Default));
}

struct Shelf {
  std::mutex mutex;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 4> machines;
};

// Never destroyed: threads may still compile while the process ends.
Shelf& idle_machines() {
  static Shelf& shelf = *new Shelf;
  return shelf;
}

}  // namespace

std::string_view name(Isa isa) {
  constexpr std::array<std::string_view, 4> kNames = {"baseline", "avx2", "avx512", "neon"};
  return kNames[static_cast<size_t>(isa)];
}

std::string_view triple_level(Isa isa) {
  constexpr std::array<std::string_view, 4> kNames = {"x86-64", "x86-64-v3", "x86-64-v4",
                                                      "aarch64"};
  return kNames[static_cast<size_t>(isa)];
}

Isa isa_of_level(std::string_view level) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (triple_level(isa) == level) return isa;
  }
  throw ValueError(fmt::format("compile: unknown level '{}'", level),
                   {.hint = "levels are x86-64, x86-64-v3, x86-64-v4 and aarch64"});
}

const Target& target_of(Isa isa) { return kTargets[static_cast<size_t>(isa)]; }

const kir::Kernel& kernel_for(const kir::Kernel& kernel, const Target& target) {
  const bool is_small = target.vector_regs < 32 || target.vector_bits < 256;
  return is_small && kernel.narrow ? *kernel.narrow : kernel;
}

LentMachine::LentMachine(Isa isa) : isa_(isa) {
  {
    Shelf& shelf = idle_machines();
    std::lock_guard<std::mutex> lock(shelf.mutex);
    auto& idle = shelf.machines[static_cast<size_t>(isa)];
    if (!idle.empty()) {
      machine_ = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!machine_) machine_ = make_machine(target_of(isa));
}

LentMachine::~LentMachine() {
  Shelf& shelf = idle_machines();
  std::lock_guard<std::mutex> lock(shelf.mutex);
  shelf.machines[static_cast<size_t>(isa_)].push_back(std::move(machine_));
}

}  // namespace tenon::codegen
