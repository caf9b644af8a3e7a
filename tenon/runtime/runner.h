// Runs the steps of a planned program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tenon/abi/kernel_abi.h"
#include "tenon/abi/module.h"
#include "tenon/runtime/executor.h"
#include "tenon/runtime/plan.h"

namespace tenon::runtime {

// The functions that generated code may call.
const abi::RuntimeTable& runtime_table();

// Called around each step of the program that run() is given, not of those that it calls.
class StepHook {
 public:
  virtual ~StepHook() = default;
  // `slots`: the memory of each slot, to be filled in where the interface left it null.
  virtual void before(size_t step, void** slots) = 0;
  virtual void after(size_t step) = 0;
};

class Runner {
 public:
  Runner(const abi::Module& module, std::span<const abi::KernelFn> kernels, const EvalHook& eval,
         const SymbolTable& symbols, const Plan& plan, int64_t* status)
      : module_(module),
        kernels_(kernels),
        eval_(eval),
        symbols_(symbols),
        plan_(plan),
        status_(status) {}

  // `frame`: ProgramPlan::frame bytes. `interface`: the memory of arguments, then of results; null
  // for a result whose slot is an alias. `stack`: ProgramPlan::pointers entries; its first ones
  // hold the memory of each slot afterwards.
  void run(uint32_t program, std::byte* frame, void* const* interface, void** stack,
           StepHook* hook = nullptr) const;

 private:
  struct Frame {
    const abi::Program& program;
    const ProgramPlan& plan;
    std::byte* memory;
    void** slots;  // the memory of each slot
    void** free;   // the rest of the pointer stack
  };
  void step(const abi::LaunchStep& step, const StepPlan& plan, const Frame& frame) const;
  void step(const abi::CallStep& step, const StepPlan& plan, const Frame& frame) const;
  void step(const abi::CopyStep& step, const StepPlan& plan, const Frame& frame) const;
  void step(const abi::EvalStep& step, const StepPlan& plan, const Frame& frame) const;
  [[noreturn]] void failed(const abi::LaunchStep& step, const Frame& frame) const;

  const abi::Module& module_;
  std::span<const abi::KernelFn> kernels_;
  const EvalHook& eval_;
  const SymbolTable& symbols_;
  const Plan& plan_;
  int64_t* status_;
};

}  // namespace tenon::runtime
