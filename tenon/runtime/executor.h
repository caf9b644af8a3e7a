// Runs a compiled module.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/abi/kernel_abi.h"
#include "tenon/abi/module.h"
#include "tenon/runtime/array.h"

namespace tenon::runtime {

// Evaluates EvalSteps; given by who knows the graph (program/).
using EvalHook = std::function<std::vector<Literal>(
    const abi::EvalStep&, std::span<const Literal> operands, const Dim::Lookup& symbols)>;

struct Plan;  // plan.h

// What setup programs computed from externals, by abi::Module::setup_keys.
using SetupResults = std::map<std::string, Array>;

struct ArgumentSpec {
  std::string route;  // "x", "p.w", "1.lo": for errors
  DType dtype;
  Shape shape;
  bool writable = false;
};

// A module ready to run: code mapped, dims compiled, memory plans cached per set of sizes. Many
// threads may call one Executor; each call has an arena of its own from a small free list, and a
// call of sizes seen before waits for no other.
class Executor {
 public:
  // Picks the best image that this CPU runs (TENON_ISA forces a level: baseline, avx2, avx512).
  // Raises ValueError [module_check] for a module that is not well-formed, UnsupportedError naming
  // CPU and levels when it has kernels and none of its images fits.
  Executor(std::shared_ptr<const abi::Module> module, std::vector<ArgumentSpec> arguments,
           EvalHook eval);
  // With functions of this process in place of an image, one per kernel: for tests.
  Executor(std::shared_ptr<const abi::Module> module, std::vector<ArgumentSpec> arguments,
           EvalHook eval, std::vector<abi::KernelFn> kernels);
  ~Executor();

  // True when one of the module's images runs on this CPU, or it has no kernels.
  static bool fits(const abi::Module& module);

  // Runs `setup` on the externals (in the module's order); needed once before the first call when
  // the module has externals, and never while calls run. Keeps the externals' memory where setup
  // passes it on. With `shared`, what another program bound to the same externals has computed is
  // taken from there, and what this one computes is added. Raises ValueError on dtype or shape
  // misfit, naming the external.
  void bind(std::span<const Array> externals, SetupResults* shared = nullptr);
  // The same with externals that are asked for one by one, by their place in the module, when setup
  // is about to read them, and released after it has.
  void bind_from(const std::function<Array(size_t)>& external, SetupResults* shared = nullptr);
  bool bound() const;

  // `arguments` already agree in dtype, rank and static dims with the specs; here names are bound
  // and compared ("argument y: dim n is 4, but argument x has n = 3" [argument_dim]), ranges and
  // divisors checked, overlap of writable arguments with others resolved: a read-only one is copied
  // first, two writable ones raise ValueError [argument_overlap]. Sets `results`, each in fresh
  // memory of the allocator; with room in that list and one of the last four sets of sizes a call
  // allocates nothing and takes no lock. Updates are written into the writable arguments. A failed
  // check of a kernel raises IndexError or ValueError naming the operation; writable arguments may
  // then hold a part of the updates.
  void call(std::span<const Array> arguments, std::vector<Array>& results) const;
  std::vector<Array> call(std::span<const Array> arguments) const;

  // For explain(): the memory plan of the newest sizes; a program without names is planned now.
  struct Sizes {
    std::shared_ptr<const Plan> plan;  // null before the first call of a program with names
    std::string names;                 // "batch = 4, n = 7"; empty for none
  };
  Sizes recent_sizes() const;
  const std::string& level() const;  // of the image in use; empty without kernels

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::runtime
