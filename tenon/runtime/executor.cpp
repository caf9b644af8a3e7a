#include "tenon/runtime/executor.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"
#include "tenon/runtime/binding.h"
#include "tenon/runtime/context.h"
#include "tenon/runtime/cpu.h"
#include "tenon/runtime/external_stream.h"
#include "tenon/runtime/float_mode.h"
#include "tenon/runtime/image.h"
#include "tenon/runtime/module_check.h"
#include "tenon/runtime/plan.h"
#include "tenon/runtime/runner.h"
#include "tenon/runtime/shared_lines.h"

namespace tenon::runtime {
namespace {

constexpr size_t kKeptPlans = 32;

const abi::Image* best_image(const abi::Module& module) {
  for (const std::string& level : usable_levels()) {
    for (const abi::Image& image : module.images) {
      if (image.level == level) return &image;
    }
  }
  return nullptr;
}

std::shared_ptr<const abi::Module> checked(std::shared_ptr<const abi::Module> module,
                                           const std::vector<ArgumentSpec>& arguments) {
  std::vector<bool> writable;
  for (const ArgumentSpec& argument : arguments) writable.push_back(argument.writable);
  check_module(*module, writable);
  return module;
}

}  // namespace

struct Executor::Impl {
  std::shared_ptr<const abi::Module> module;
  std::vector<ArgumentSpec> specs;
  EvalHook eval;
  SymbolTable symbols;
  Binding binding;
  Planner planner;
  std::shared_ptr<const LoadedImage> image;
  std::vector<abi::KernelFn> kernels;
  std::string level;
  std::vector<uint32_t> writable;  // positions of writable arguments
  std::vector<Array> appended;     // to the arguments: externals, or what setup made of them
  bool bound = false;
  const std::vector<int64_t> machine_sizes = SymbolTable::machine_values();
  ContextList contexts;
  std::mutex plans_mutex;
  std::list<std::shared_ptr<const Plan>> plans;  // newest first

  Impl(std::shared_ptr<const abi::Module> m, std::vector<ArgumentSpec> arguments, EvalHook hook)
      : module(checked(std::move(m), arguments)),
        specs(std::move(arguments)),
        eval(std::move(hook)),
        binding(entry().name, specs, symbols),
        planner(module, symbols) {
    size_t externals = module->setup == abi::Module::kNoProgram
                           ? module->externals.size()
                           : module->programs[module->setup].results;
    for (uint32_t i = 0; i < specs.size(); ++i) {
      if (specs[i].writable) writable.push_back(i);
    }
    bound = externals == 0;
  }

  const abi::Program& entry() const { return module->programs[module->entry]; }

  void load_image() {
    if (module->kernels.empty()) return;
    const abi::Image* best = best_image(*module);
    if (best == nullptr) {
      std::string levels;
      for (const abi::Image& i : module->images) levels += (levels.empty() ? "" : ", ") + i.level;
      throw UnsupportedError(fmt::format("{}: has code for {}, this CPU ({}) runs {}", entry().name,
                                         levels.empty() ? "no level" : levels, cpu_info().model,
                                         fmt::join(usable_levels(), ", ")),
                             {.label = "cpu_level"});
    }
    image = LoadedImage::load(best->bytes);
    for (uint64_t offset : best->offsets) kernels.push_back(image->function(offset));
    level = best->level;
  }

  const Plan& plan_for(Context& context) {
    auto& recent = context.recent;
    for (size_t i = 0; i < recent.size() && recent[i]; ++i) {
      if (recent[i]->symbols != context.symbols) continue;
      if (i != 0) std::rotate(recent.begin(), recent.begin() + i, recent.begin() + i + 1);
      return *recent[0];
    }
    std::rotate(recent.begin(), recent.end() - 1, recent.end());
    recent[0] = shared_plan(context.symbols);
    return *recent[0];
  }

  std::shared_ptr<const Plan> shared_plan(const std::vector<int64_t>& values) {
    std::lock_guard lock(plans_mutex);
    for (auto it = plans.begin(); it != plans.end(); ++it) {
      if ((*it)->symbols != values) continue;
      plans.splice(plans.begin(), plans, it);
      return plans.front();
    }
    plans.push_front(planner.plan(module->entry, values));
    if (plans.size() > kKeptPlans) plans.pop_back();
    return plans.front();
  }

  void check_external(size_t i, const Array& array, const std::vector<int64_t>& machine) const {
    const abi::External& wanted = module->externals[i];
    std::vector<int64_t> dims;
    for (abi::DimId id : wanted.dims) dims.push_back(planner.dim(id).eval(machine));
    if (array.valid() && array.dtype() == wanted.dtype && array.dims() == dims) return;
    throw ValueError(
        fmt::format("{}: external {}: expected {}, got {}", entry().name, wanted.name,
                    describe(wanted.dtype, dims), array.valid() ? array.describe() : "nothing"),
        {.label = "external_type"});
  }

  void bind_symbols(std::span<const Array> arguments, Context& context) const {
    context.symbols.assign(machine_sizes.begin(), machine_sizes.end());
    binding.bind(arguments, context.symbols);
  }

  void take_arguments(std::span<const Array> arguments, Context& context) const {
    context.arguments.assign(arguments.begin(), arguments.end());
    if (writable.size() > 1) check_writable_apart(entry().name, specs, arguments);
    for (uint32_t w : writable) {
      for (uint32_t i = 0; i < arguments.size(); ++i) {
        if (i != w && overlap(arguments[i], arguments[w]))
          context.arguments[i] = arguments[i].copy();
      }
    }
    context.arguments.insert(context.arguments.end(), appended.begin(), appended.end());
  }

  // Memory for the results that have their own.
  static void fresh(const abi::Program& program, const ProgramPlan& sizes,
                    std::vector<Array>& results) {
    results.resize(program.results);
    for (uint32_t i = 0; i < program.results; ++i) {
      const abi::Slot& slot = program.slots[program.arguments + i];
      if (slot.kind != abi::Slot::Kind::kResult) continue;
      results[i] = Array::empty(slot.dtype, sizes.slots[program.arguments + i].dims);
    }
  }

  // The same in one block: what lives together and is read at every call gets huge pages, however
  // small its parts.
  static std::vector<Array> results_together(const abi::Program& program,
                                             const ProgramPlan& sizes) {
    auto visit = [&](auto&& each) {
      for (uint32_t i = 0; i < program.results; ++i) {
        if (program.slots[program.arguments + i].kind == abi::Slot::Kind::kResult) {
          each(i, sizes.slots[program.arguments + i]);
        }
      }
    };
    size_t total = 0;
    auto padded = [](size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
    visit([&](uint32_t, const SlotPlan& slot) { total += padded(slot.bytes); });
    std::shared_ptr<void> block = allocate(total);
    auto* at = static_cast<std::byte*>(block.get());
    std::vector<Array> results(program.results);
    visit([&](uint32_t i, const SlotPlan& slot) {
      DType dtype = program.slots[program.arguments + i].dtype;
      results[i] = Array::borrow(dtype, slot.dims, at, block, true);
      at += padded(slot.bytes);
    });
    return results;
  }

  // Runs the entry on `context.arguments`.
  void run_entry(const Plan& plan, Context& context, std::vector<Array>& results) {
    const abi::Program& program = entry();
    const ProgramPlan& sizes = plan.programs[module->entry];
    void** interface = prepare(program, sizes, context);
    for (uint32_t i = 0; i < program.arguments; ++i) {
      const Array& argument = context.arguments[i];
      check_internal(argument.bytes() == sizes.slots[i].bytes, "an argument has another size");
      // Only steps that update a writable argument write here.
      interface[i] = const_cast<void*>(argument.data());
    }
    fresh(program, sizes, results);
    void** stack = launch(module->entry, plan, context, results, nullptr);
    for (uint32_t i = 0; i < program.results; ++i) {
      if (results[i].valid()) continue;
      abi::SlotId id = program.arguments + i;
      results[i] =
          Array::borrow(program.slots[id].dtype, sizes.slots[id].dims, stack[id], nullptr, false)
              .copy();
    }
  }

  // Runs setup. A result that is the memory of an external or constant is that array.
  std::vector<Array> run_setup(const Plan& plan, std::function<Array(size_t)> external) {
    const abi::Program& program = module->programs[module->setup];
    const ProgramPlan& sizes = plan.programs[module->setup];
    Context context;
    void** interface = prepare(program, sizes, context);
    std::fill_n(interface, program.arguments, nullptr);
    std::vector<Array> results = results_together(program, sizes);
    ExternalStream stream(program, sizes, std::move(external));
    void** stack = launch(module->setup, plan, context, results, &stream);
    stream.finish(stack);
    read_together(results);
    for (uint32_t i = 0; i < program.results; ++i) {
      if (results[i].valid()) continue;
      abi::SlotId id = program.arguments + i;
      const abi::Slot& root = program.slots[sizes.slots[id].root];
      std::shared_ptr<const void> owner = module;
      if (root.kind == abi::Slot::Kind::kArgument) {
        owner = std::make_shared<const Array>(stream.argument(root.ref));
      }
      results[i] =
          Array::borrow(program.slots[id].dtype, sizes.slots[id].dims, stack[id], owner, false);
    }
    return results;
  }

  // Room for a run: the places of arguments and results.
  static void** prepare(const abi::Program& program, const ProgramPlan& sizes, Context& context) {
    size_t pointers = program.arguments + program.results + sizes.pointers;
    if (context.pointers.size() < pointers) context.pointers.resize(pointers);
    if (context.arena_bytes < sizes.frame || !context.arena) {
      context.arena.reset();
      context.arena = allocate(sizes.frame);
      context.arena_bytes = sizes.frame;
    }
    return context.pointers.data();
  }

  // Returns the memory of each slot.
  void** launch(uint32_t index, const Plan& plan, Context& context, std::vector<Array>& results,
                StepHook* hook) {
    const abi::Program& program = module->programs[index];
    void** interface = context.pointers.data();
    for (uint32_t i = 0; i < program.results; ++i) {
      interface[program.arguments + i] = results[i].valid() ? results[i].mutable_data() : nullptr;
    }
    context.status = 0;
    void** stack = interface + program.arguments + program.results;
    FloatMode mode;
    Runner(*module, kernels, eval, planner.symbols(), plan, &context.status)
        .run(index, static_cast<std::byte*>(context.arena.get()), interface, stack, hook);
    return stack;
  }

  // Runs setup unless `shared` holds all that it computes.
  void bind_setup(const std::function<Array(size_t)>& external, const std::vector<int64_t>& machine,
                  SetupResults* shared) {
    const std::vector<std::string>& keys = module->setup_keys;
    std::vector<Array> known(keys.size());
    for (size_t i = 0; i < keys.size() && shared != nullptr; ++i) {
      if (auto it = shared->find(keys[i]); it != shared->end()) known[i] = it->second;
    }
    auto is_known = [](const Array& array) { return array.valid(); };
    if (known.empty() || !std::all_of(known.begin(), known.end(), is_known)) {
      appended = run_setup(*planner.plan(module->setup, machine), external);
    } else {
      appended.resize(known.size());
    }
    for (size_t i = 0; i < keys.size() && shared != nullptr; ++i) {
      if (known[i].valid()) {
        appended[i] = known[i];
      } else {
        shared->emplace(keys[i], appended[i]);
      }
    }
  }
};

Executor::Executor(std::shared_ptr<const abi::Module> module, std::vector<ArgumentSpec> arguments,
                   EvalHook eval)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(arguments), std::move(eval))) {
  impl_->load_image();
}

Executor::Executor(std::shared_ptr<const abi::Module> module, std::vector<ArgumentSpec> arguments,
                   EvalHook eval, std::vector<abi::KernelFn> kernels)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(arguments), std::move(eval))) {
  check_internal(kernels.size() == impl_->module->kernels.size(), "one function per kernel");
  impl_->kernels = std::move(kernels);
}

Executor::~Executor() = default;

bool Executor::fits(const abi::Module& module) {
  return module.kernels.empty() || best_image(module) != nullptr;
}

bool Executor::bound() const { return impl_->bound; }
const std::string& Executor::level() const { return impl_->level; }

void Executor::bind(std::span<const Array> externals, SetupResults* shared) {
  const std::vector<abi::External>& wanted = impl_->module->externals;
  if (externals.size() != wanted.size()) {
    throw ValueError(fmt::format("{}: expected {} externals, got {}", impl_->entry().name,
                                 wanted.size(), externals.size()),
                     {.label = "external_count"});
  }
  std::vector<int64_t> machine = SymbolTable::machine_values();
  for (size_t i = 0; i < externals.size(); ++i) impl_->check_external(i, externals[i], machine);
  bind_from([&](size_t i) { return externals[i]; }, shared);
}

void Executor::bind_from(const std::function<Array(size_t)>& external, SetupResults* shared) {
  std::vector<int64_t> machine = SymbolTable::machine_values();
  auto checked = [&](size_t i) {
    Array array = external(i);
    impl_->check_external(i, array, machine);
    return array;
  };
  const abi::Module& module = *impl_->module;
  if (module.setup == abi::Module::kNoProgram) {
    std::vector<Array> all;
    for (size_t i = 0; i < module.externals.size(); ++i) all.push_back(checked(i));
    impl_->appended = std::move(all);
  } else {
    impl_->bind_setup(checked, machine, shared);
  }
  impl_->bound = true;
}

void Executor::call(std::span<const Array> arguments, std::vector<Array>& results) const {
  if (!impl_->bound) {
    throw ValueError(fmt::format("{}: its externals are not bound", impl_->entry().name),
                     {.label = "external_missing"});
  }
  check_internal(arguments.size() == impl_->specs.size(), "a call has another number of arguments");
  results.clear();
  std::unique_ptr<Context> context = impl_->contexts.take();
  impl_->bind_symbols(arguments, *context);
  const Plan& plan = impl_->plan_for(*context);
  impl_->take_arguments(arguments, *context);
  impl_->run_entry(plan, *context, results);
  context->arguments.clear();
  impl_->contexts.give(std::move(context));
}

std::vector<Array> Executor::call(std::span<const Array> arguments) const {
  std::vector<Array> results;
  call(arguments, results);
  return results;
}

Executor::Sizes Executor::recent_sizes() const {
  const std::vector<int64_t> machine = SymbolTable::machine_values();
  Sizes sizes;
  {
    std::lock_guard lock(impl_->plans_mutex);
    if (!impl_->plans.empty()) sizes.plan = impl_->plans.front();
  }
  if (sizes.plan == nullptr && impl_->binding.bound() == machine.size()) {
    sizes.plan = impl_->shared_plan(machine);
  }
  if (sizes.plan == nullptr) return sizes;
  for (uint32_t i = static_cast<uint32_t>(machine.size()); i < sizes.plan->symbols.size(); ++i) {
    sizes.names += fmt::format("{}{} = {}", sizes.names.empty() ? "" : ", ",
                               impl_->planner.symbols().name(i), sizes.plan->symbols[i]);
  }
  return sizes;
}

}  // namespace tenon::runtime
