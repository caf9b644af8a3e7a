#include "tenon/codegen/codegen.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <cctype>

#include "tenon/base/error.h"
#include "tenon/codegen/emitter.h"
#include "tenon/codegen/image_layout.h"
#include "tenon/codegen/optimize.h"
#include "tenon/codegen/target.h"
#include "tenon/kir/expand_math.h"

namespace tenon::codegen {
namespace {

// "k3_softmax": unique in the module, readable in dumps.
std::string function_name(size_t position, const std::string& kernel) {
  std::string name = fmt::format("k{}_{}", position, kernel);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_'; }, '_');
  return name;
}

// In debug builds and tests; a release trusts the emitter.
void check_module([[maybe_unused]] const llvm::Module& module) {
#ifndef NDEBUG
  std::string text;
  llvm::raw_string_ostream out(text);
  if (llvm::verifyModule(module, &out)) {
    throw InternalError("codegen: the emitted code is malformed: " + out.str());
  }
#endif
}

llvm::SmallVector<char, 0> generate(llvm::Module& module, llvm::TargetMachine& machine,
                                    llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true)) {
    throw InternalError("codegen: the target cannot write this kind of file");
  }
  passes.run(module);
  return buffer;
}

bool has_math(const kir::Block& block) {
  return std::any_of(block.insts.begin(), block.insts.end(), [](const kir::Inst* inst) {
    return kir::is_math(inst->op) || (inst->loop && has_math(inst->loop->body));
  });
}

void emit_kernel(llvm::Module& module, const Target& target, const kir::Kernel& kernel,
                 const std::string& name) {
#ifndef NDEBUG
  kir::verify(kernel);
#endif
  const kir::Kernel& chosen = kernel_for(kernel, target);
  if (!has_math(chosen.body)) return Emitter(module, target, chosen).emit(name);
  kir::Kernel expanded = chosen.clone();
  kir::expand_math(expanded);
  Emitter(module, target, expanded).emit(name);
}

}  // namespace

Image compile(std::span<const kir::Kernel* const> kernels, const Options& options) {
  const Target& target = target_of(options.isa);
  LentMachine lent(options.isa);
  llvm::TargetMachine& machine = lent.get();
  llvm::LLVMContext context;
  context.setDiscardValueNames(options.dump_ir == nullptr);
  llvm::Module module("tenon", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);

  std::vector<std::string> entries;
  for (const kir::Kernel* kernel : kernels) {
    entries.push_back(function_name(entries.size(), kernel->name));
    emit_kernel(module, target, *kernel, entries.back());
  }
  check_module(module);
  if (options.optimize) optimize(module, machine);
  if (options.dump_ir) {
    llvm::raw_string_ostream out(*options.dump_ir);
    module.print(out, nullptr);
  }
  if (options.dump_asm) {
    auto copy = llvm::CloneModule(module);
    auto text = generate(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
    options.dump_asm->assign(text.data(), text.size());
  }
  auto object = generate(module, machine, llvm::CodeGenFileType::ObjectFile);
  return layout_image(std::as_bytes(std::span(object.data(), object.size())), entries);
}

}  // namespace tenon::codegen
