#include "tenon/runtime/runner.h"

#include <cmath>
#include <cstring>

#include "tenon/base/check_code.h"
#include "tenon/base/error.h"
#include "tenon/runtime/float_mode.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {

const abi::RuntimeTable& runtime_table() {
  static const abi::RuntimeTable table = {
      .size = sizeof(abi::RuntimeTable) / sizeof(void*),
      .fmod = [](double a, double b) { return std::fmod(a, b); },
      .pow = [](double a, double b) { return std::pow(a, b); },
      .fma = [](double a, double b, double c) { return std::fma(a, b, c); },
  };
  return table;
}

void Runner::run(uint32_t index, std::byte* memory, void* const* interface, void** stack,
                 StepHook* hook) const {
  const abi::Program& program = module_.programs[index];
  const ProgramPlan& plan = plan_.programs[index];
  size_t count = program.slots.size();
  for (size_t i = 0; i < count; ++i) {
    const SlotPlan& slot = plan.slots[i];
    const abi::Slot& root = program.slots[slot.root];
    switch (root.kind) {
      case abi::Slot::Kind::kArgument: stack[i] = interface[root.ref]; break;
      case abi::Slot::Kind::kResult: stack[i] = interface[program.arguments + root.ref]; break;
      case abi::Slot::Kind::kTemp: stack[i] = memory + plan.slots[slot.root].offset; break;
      case abi::Slot::Kind::kConstant:
        // Constants are never written: check_module sees to that for steps.
        stack[i] = const_cast<std::byte*>(module_.constants[root.ref].data());
        break;
      case abi::Slot::Kind::kAlias: break;
    }
  }
  Frame frame{program, plan, memory, stack, stack + count};
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (hook != nullptr) hook->before(i, stack);
    std::visit([&](const auto& s) { step(s, plan.steps[i], frame); }, program.steps[i]);
    if (hook != nullptr) hook->after(i);
  }
}

void Runner::step(const abi::LaunchStep& s, const StepPlan& plan, const Frame& frame) const {
  if (plan.grid == 0) return;
  for (size_t i = 0; i < s.buffers.size(); ++i) frame.free[i] = frame.slots[s.buffers[i]];
  std::byte* scratch = frame.memory + plan.offset;
  abi::KernelFn kernel = kernels_[s.kernel];
  abi::KernelArgs args{frame.free, plan.dims.data(), scratch, status_, &runtime_table()};
  if (plan.chunk >= plan.grid) {
    kernel(&args, 0, plan.grid);
  } else {
    parallel_for(plan.grid, plan.chunk, [&](int64_t begin, int64_t end, int thread) {
      abi::KernelArgs mine = args;
      mine.scratch = scratch + static_cast<size_t>(thread) * plan.scratch;
      kernel(&mine, begin, end);
    });
  }
  if (*status_ != 0) failed(s, frame);
}

void Runner::failed(const abi::LaunchStep& s, const Frame& frame) const {
  int64_t code = *status_;
  *status_ = 0;
  std::string origins;
  for (const std::string& origin : module_.kernels[s.kernel].origins) {
    origins += (origins.empty() ? "" : "·") + origin;
  }
  std::string where =
      fmt::format(" in {} of {}", origins.empty() ? "a kernel" : origins, frame.program.name);
  if (code == kCheckIndexOutOfRange) {
    throw IndexError("an index is out of range" + where, {.label = "index_range"});
  }
  if (code == kCheckEmptyReduction) {
    throw ValueError("a reduction without elements has no result" + where,
                     {.label = "reduction_empty"});
  }
  if (code == kCheckRowTooLong) {
    throw ValueError("more elements in a row than positions to sort" + where, {.label = "sort_c2"});
  }
  throw InternalError(fmt::format("internal: check {} failed{}", code, where));
}

void Runner::step(const abi::CallStep& s, const StepPlan& plan, const Frame& frame) const {
  const abi::Program& callee = module_.programs[s.program];
  void** interface = frame.free;
  size_t count = 0;
  for (abi::SlotId id : s.arguments) interface[count++] = frame.slots[id];
  for (abi::SlotId id : s.results) interface[count++] = frame.slots[id];
  void** stack = interface + count;
  run(s.program, frame.memory + plan.offset, interface, stack);
  for (size_t i = 0; i < s.results.size(); ++i) {
    void* wanted = frame.slots[s.results[i]];
    void* is = stack[callee.arguments + i];
    size_t bytes = frame.plan.slots[s.results[i]].bytes;
    if (is != wanted && bytes != 0) std::memmove(wanted, is, bytes);
  }
}

void Runner::step(const abi::CopyStep& s, const StepPlan&, const Frame& frame) const {
  void* from = frame.slots[s.from];
  void* to = frame.slots[s.to];
  size_t bytes = frame.plan.slots[s.from].bytes;
  if (from == to || bytes == 0) return;
  constexpr int64_t kPiece = int64_t{256} << 10;
  auto pieces = static_cast<int64_t>(bytes);
  parallel_for(pieces, kPiece, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

void Runner::step(const abi::EvalStep& s, const StepPlan&, const Frame& frame) const {
  check_internal(static_cast<bool>(eval_), "a program with evaluated steps has no evaluator");
  std::vector<Literal> operands;
  for (abi::SlotId id : s.operands) {
    operands.push_back(Literal::borrow(frame.program.slots[id].dtype, frame.plan.slots[id].dims,
                                       frame.slots[id], nullptr));
  }
  Dim::Lookup lookup = [&](std::string_view name) -> std::optional<int64_t> {
    const uint32_t* index = symbols_.find(name);
    if (index == nullptr || *index >= plan_.symbols.size()) return std::nullopt;
    return plan_.symbols[*index];
  };
  std::vector<Literal> results = eval_(s, operands, lookup);
  check_internal(results.size() == s.results.size(),
                 "an evaluation gave another number of results");
  for (size_t i = 0; i < results.size(); ++i) {
    size_t bytes = frame.plan.slots[s.results[i]].bytes;
    check_internal(results[i].bytes() == bytes, "an evaluation gave a result of another size");
    if (bytes != 0) std::memcpy(frame.slots[s.results[i]], results[i].data(), bytes);
  }
}

}  // namespace tenon::runtime
