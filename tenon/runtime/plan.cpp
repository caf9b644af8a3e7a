#include "tenon/runtime/plan.h"

#include <algorithm>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/runtime/allocator.h"
#include "tenon/runtime/arena.h"
#include "tenon/runtime/module_check.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {

using abi::DimId;
using abi::Module;
using abi::Program;
using abi::Slot;
using abi::SlotId;

Planner::Planner(std::shared_ptr<const Module> module, SymbolTable symbols)
    : module_(std::move(module)), symbols_(std::move(symbols)) {
  dims_.reserve(module_->dims.size());
  for (const Dim& dim : module_->dims) dims_.emplace_back(dim, symbols_);
}

class Planner::Builder {
 public:
  Builder(const Planner& planner, std::vector<int64_t> values)
      : planner_(planner), module_(*planner.module_), plan_(std::make_shared<Plan>()) {
    plan_->symbols = std::move(values);
    values_.resize(module_.dims.size());
  }

  std::shared_ptr<const Plan> run(uint32_t root) {
    plan_->programs.resize(module_.programs.size());
    std::vector<bool> needed(module_.programs.size(), false);
    needed[root] = true;
    for (size_t i = root + size_t{1}; i-- > 0;) {
      if (!needed[i]) continue;
      for (const abi::Step& step : module_.programs[i].steps) {
        if (auto* call = std::get_if<abi::CallStep>(&step)) needed[call->program] = true;
      }
    }
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) program(i);
    }
    return plan_;
  }

 private:
  [[noreturn]] void misfit(std::string_view what) const {
    throw ValueError(fmt::format("{}: memory plan: {}", at_->name, what), {.label = "plan_size"});
  }

  int64_t value(DimId id) {
    if (!values_[id]) values_[id] = planner_.dims_[id].eval(plan_->symbols);
    return *values_[id];
  }

  int64_t size(DimId id) {
    int64_t v = value(id);
    if (v < 0) {
      throw ShapeError(
          fmt::format("{}: dimension {} is {}", at_->name, planner_.dims_[id].text(), v),
          {.label = "dim_negative"});
    }
    return v;
  }

  void program(size_t index) {
    at_ = &module_.programs[index];
    ProgramPlan& out = plan_->programs[index];
    intervals_.clear();
    for (SlotId i = 0; i < at_->slots.size(); ++i) out.slots.push_back(slot(i));
    check_aliases(out);
    size_t launch_pointers = 0, call_pointers = 0;
    for (uint32_t i = 0; i < at_->steps.size(); ++i) {
      out.steps.push_back(
          std::visit([&](const auto& s) { return step(s, i, out); }, at_->steps[i]));
      if (auto* launch = std::get_if<abi::LaunchStep>(&at_->steps[i])) {
        launch_pointers = std::max(launch_pointers, launch->buffers.size());
      } else if (auto* call = std::get_if<abi::CallStep>(&at_->steps[i])) {
        call_pointers = std::max(call_pointers, call->arguments.size() + call->results.size() +
                                                    plan_->programs[call->program].pointers);
      }
    }
    out.pointers = at_->slots.size() + std::max(launch_pointers, call_pointers);
    out.frame = place(intervals_);
    spread(out);
  }

  SlotPlan slot(SlotId i) {
    const Slot& s = at_->slots[i];
    SlotPlan out;
    out.root = root_slot(*at_, i);
    for (DimId id : s.dims) out.dims.push_back(size(id));
    out.bytes = static_cast<size_t>(size(s.bytes));
    int64_t dense = element_count(out.dims);
    if (dense > (int64_t{1} << 58) || static_cast<size_t>(dense) * size_of(s.dtype) != out.bytes) {
      misfit(fmt::format("slot {} has {} bytes, its shape {}", i, out.bytes,
                         describe(s.dtype, out.dims)));
    }
    if (s.kind == Slot::Kind::kConstant && module_.constants[s.ref].bytes() != out.bytes) {
      misfit(fmt::format("slot {} has {} bytes, its constant {}", i, out.bytes,
                         module_.constants[s.ref].bytes()));
    }
    if (s.kind == Slot::Kind::kTemp) intervals_.push_back({s.first, s.last, out.bytes, 0});
    return out;
  }

  void check_aliases(const ProgramPlan& out) const {
    for (size_t i = 0; i < out.slots.size(); ++i) {
      size_t have = out.slots[out.slots[i].root].bytes;
      if (out.slots[i].bytes > have) {
        misfit(fmt::format("slot {} has {} bytes in memory of {}", i, out.slots[i].bytes, have));
      }
    }
  }

  StepPlan step(const abi::LaunchStep& s, uint32_t i, const ProgramPlan&) {
    StepPlan out;
    for (DimId id : s.dims) out.dims.push_back(value(id));
    out.grid = size(s.grid);
    // One index: about 10 bytes from memory and 8 operations a nanosecond.
    double cost = static_cast<double>(size(s.bytes_per_index)) / 10 +
                  static_cast<double>(size(s.ops_per_index)) / 8;
    out.chunk = choose_chunk(out.grid, cost);
    auto scratch = static_cast<size_t>(size(s.scratch_bytes));
    if (scratch > (size_t{1} << 50)) misfit("scratch memory of over 2^50 bytes");
    out.scratch = (scratch + kAlignment - 1) / kAlignment * kAlignment;
    bool one = out.chunk >= out.grid;
    size_t threads = one ? 1 : static_cast<size_t>(thread_count());
    intervals_.push_back({i, i, out.scratch * threads, 0});
    return out;
  }

  StepPlan step(const abi::CallStep& s, uint32_t i, const ProgramPlan& mine) {
    const ProgramPlan& callee = plan_->programs[s.program];
    const Program& program = module_.programs[s.program];
    auto same = [&](SlotId here, SlotId there) {
      if (mine.slots[here].bytes != callee.slots[there].bytes) {
        misfit(fmt::format("step {}: slot {} has {} bytes, {} takes {}", i, here,
                           mine.slots[here].bytes, program.name, callee.slots[there].bytes));
      }
    };
    for (SlotId k = 0; k < s.arguments.size(); ++k) same(s.arguments[k], k);
    for (SlotId k = 0; k < s.results.size(); ++k) same(s.results[k], program.arguments + k);
    intervals_.push_back({i, i, callee.frame, 0});
    return {};
  }

  StepPlan step(const abi::CopyStep& s, uint32_t i, const ProgramPlan& mine) const {
    if (mine.slots[s.from].bytes != mine.slots[s.to].bytes) {
      misfit(fmt::format("step {} copies {} bytes to {}", i, mine.slots[s.from].bytes,
                         mine.slots[s.to].bytes));
    }
    return {};
  }

  StepPlan step(const abi::EvalStep&, uint32_t, const ProgramPlan&) const { return {}; }

  // Hands the offsets of the intervals back, in the order in which they were made.
  void spread(ProgramPlan& out) const {
    size_t next = 0;
    for (SlotId i = 0; i < at_->slots.size(); ++i) {
      if (at_->slots[i].kind == Slot::Kind::kTemp) out.slots[i].offset = intervals_[next++].offset;
    }
    for (size_t i = 0; i < at_->steps.size(); ++i) {
      bool has = std::holds_alternative<abi::LaunchStep>(at_->steps[i]) ||
                 std::holds_alternative<abi::CallStep>(at_->steps[i]);
      if (has) out.steps[i].offset = intervals_[next++].offset;
    }
  }

  const Planner& planner_;
  const Module& module_;
  std::shared_ptr<Plan> plan_;
  std::vector<std::optional<int64_t>> values_;
  std::vector<Interval> intervals_;
  const Program* at_ = nullptr;
};

std::shared_ptr<const Plan> Planner::plan(uint32_t root, std::vector<int64_t> values) const {
  return Builder(*this, std::move(values)).run(root);
}

}  // namespace tenon::runtime
