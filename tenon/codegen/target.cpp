#include "tenon/codegen/target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "tenon/base/error.h"
#include "tenon/base/machine_levels.h"

namespace tenon::codegen {
namespace {

constexpr const char* kX86Triple = "x86_64-unknown-linux-gnu";

// The tuning is that of a recent core; the instruction set is the level's alone.
constexpr Target kAvx512 = {.isa = Isa::kAvx512,
                            .vector_bits = 512,
                            .vector_regs = 32,
                            .has_fma = true,
                            .has_f16c = true,
                            .has_round = true,
                            .has_masks = true,
                            .has_masks32 = true,
                            .has_dots = false,
                            .has_tiles = false,
                            .is_arm = false,
                            .triple = kX86Triple,
                            .cpu = "x86-64-v4",
                            .features = "-prefer-256-bit"};

// AVX-512 with VNNI and BF16, and with AMX tiles beside them.
constexpr Target adding_to_avx512(Isa isa, bool tiles, const char* features) {
  Target target = kAvx512;
  target.isa = isa;
  target.has_dots = true;
  target.has_tiles = tiles;
  target.features = features;
  return target;
}

constexpr std::array<Target, kIsaCount> kTargets = {{
    {.isa = Isa::kBaseline,
     .vector_bits = 128,
     .vector_regs = 16,
     .has_fma = false,
     .has_f16c = false,
     .has_round = false,
     .has_masks = false,
     .has_masks32 = false,
     .has_dots = false,
     .has_tiles = false,
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
     .has_dots = false,
     .has_tiles = false,
     .is_arm = false,
     .triple = kX86Triple,
     .cpu = "x86-64-v3",
     .features = ""},
    kAvx512,
    adding_to_avx512(Isa::kAvx512Dot, false, "-prefer-256-bit,+avx512vnni,+avx512bf16"),
    adding_to_avx512(Isa::kAmx, true,
                     "-prefer-256-bit,+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8"),
    {.isa = Isa::kNeon,
     .vector_bits = 128,
     .vector_regs = 32,
     .has_fma = true,
     .has_f16c = true,
     .has_round = true,
     .has_masks = false,
     .has_masks32 = false,
     .has_dots = false,
     .has_tiles = false,
     .is_arm = true,
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .features = "-outline-atomics"},
}};

static_assert(kMachineLevels.size() == kIsaCount, "Isa names the levels in their order");

const MachineLevel& level_of(Isa isa) { return kMachineLevels[static_cast<size_t>(isa)]; }

// The plainest of the AVX-512 levels at which a block's code is all that it can be.
Isa wanted_level(const kir::Block& block) {
  Isa wanted = Isa::kAvx512;
  for (const kir::Inst* inst : block.insts) {
    if (inst->op == kir::Op::kPanelDot) return Isa::kAmx;
    const bool dots = inst->op == kir::Op::kDot4 || inst->op == kir::Op::kDot2;
    if (dots) wanted = std::max(wanted, Isa::kAvx512Dot);
    if (inst->loop != nullptr) wanted = std::max(wanted, wanted_level(inst->loop->body));
  }
  return wanted;
}

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
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, kIsaCount> machines;
};

// Never destroyed: threads may still compile while the process ends.
Shelf& idle_machines() {
  static Shelf& shelf = *new Shelf;
  return shelf;
}

}  // namespace

std::string_view name(Isa isa) { return level_of(isa).brief; }

std::string_view triple_level(Isa isa) { return level_of(isa).name; }

Isa isa_of_level(std::string_view level) {
  for (size_t i = 0; i < kIsaCount; ++i) {
    if (kMachineLevels[i].name == level) return static_cast<Isa>(i);
  }
  throw ValueError(fmt::format("compile: unknown level '{}'", level),
                   {.hint = "levels are x86-64, x86-64-v3, x86-64-v4, x86-64-v4-dot, "
                            "x86-64-v4-amx and aarch64"});
}

Isa plainest(const kir::Kernel& kernel, Isa isa) {
  if (level_of(isa).adds_to.empty()) return isa;
  return std::min(isa, wanted_level(kernel.body));
}

bool has_few_registers(Isa isa) { return target_of(isa).vector_regs < 32; }

const Target& target_of(Isa isa) { return kTargets[static_cast<size_t>(isa)]; }

const kir::Kernel& kernel_for(const kir::Kernel& kernel, const Target& target) {
  if (kernel.narrow == nullptr) return kernel;
  const bool is_small = target.vector_regs < 32 || target.vector_bits < 256;
  const bool lacks_tiles = !target.has_tiles && wanted_level(kernel.body) == Isa::kAmx;
  return is_small || lacks_tiles ? *kernel.narrow : kernel;
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
