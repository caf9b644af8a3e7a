#include "tenon/runtime/module_check.h"

#include "tenon/base/error.h"

namespace tenon::runtime {
namespace {

using abi::DimId;
using abi::Module;
using abi::Program;
using abi::Slot;
using abi::SlotId;

class Checker {
 public:
  Checker(const Module& module, const std::vector<bool>& writable)
      : module_(module), writable_(writable) {}

  void run() {
    require(module_.entry < module_.programs.size(), "the entry is no program");
    require(module_.setup == Module::kNoProgram || module_.setup < module_.programs.size(),
            "the setup is no program");
    for (const abi::External& external : module_.externals) dims(external.dims);
    for (const abi::Image& image : module_.images) {
      require(image.offsets.size() == module_.kernels.size(), "an image lacks kernels");
      for (uint64_t offset : image.offsets) {
        require(offset < image.bytes.size(), "a kernel stands outside its image");
      }
    }
    for (size_t i = 0; i < module_.programs.size(); ++i) program(i);
    interface();
  }

 private:
  void require(bool condition, std::string_view what) const {
    if (condition) return;
    throw ValueError(fmt::format("module: {}{}{}", at_ == nullptr ? "" : "program ",
                                 at_ == nullptr ? "" : at_->name + ": ", what),
                     {.label = "module_check"});
  }

  void dim(DimId id) const { require(id < module_.dims.size(), "no such dimension"); }
  void dims(const std::vector<DimId>& ids) const {
    for (DimId id : ids) dim(id);
  }
  void slot(SlotId id) const { require(id < at_->slots.size(), "no such slot"); }

  // Externals and what setup makes of them become arguments of the entry.
  void interface() {
    const Program& entry = module_.programs[module_.entry];
    size_t appended = module_.externals.size();
    if (module_.setup != Module::kNoProgram) {
      const Program& setup = module_.programs[module_.setup];
      require(setup.arguments == module_.externals.size(),
              "the setup takes another number of externals");
      require(module_.setup_keys.empty() || module_.setup_keys.size() == setup.results,
              "the setup has another number of keys than results");
      appended = setup.results;
    }
    require(entry.arguments == writable_.size() + appended,
            "the entry takes another number of arguments than its signature");
    for (size_t i = 0; i < entry.arguments; ++i) {
      bool allowed = i < writable_.size() && writable_[i];
      require(allowed || !written_[module_.entry][i], "the entry writes a read-only argument");
    }
    if (module_.setup == Module::kNoProgram) return;
    for (bool written : written_[module_.setup]) require(!written, "the setup writes an external");
  }

  void program(size_t index) {
    const Program& p = module_.programs[index];
    at_ = &p;
    written_.emplace_back(p.arguments, false);
    require(p.slots.size() >= size_t{p.arguments} + p.results, "slots are missing");
    for (SlotId i = 0; i < p.slots.size(); ++i) check_slot(p, i);
    for (const abi::Step& step : p.steps) {
      std::visit([&](const auto& s) { check(s, index); }, step);
    }
    at_ = nullptr;
  }

  void check_slot(const Program& p, SlotId i) const {
    const Slot& s = p.slots[i];
    dims(s.dims);
    dim(s.bytes);
    require(static_cast<int>(s.dtype) < kDTypeCount, "no such dtype");
    bool argument = i < p.arguments;
    bool result = !argument && i < p.arguments + p.results;
    switch (s.kind) {
      case Slot::Kind::kArgument:
        require(argument && s.ref == i, "an argument's slot is out of place");
        return;
      case Slot::Kind::kResult:
        require(result && s.ref == i - p.arguments, "a result's slot is out of place");
        return;
      case Slot::Kind::kTemp:
        require(!argument && !result, "an intermediate stands where an argument or result belongs");
        require(s.first <= s.last, "an intermediate ends before it begins");
        return;
      case Slot::Kind::kConstant:
        require(!argument && !result, "a constant stands where an argument or result belongs");
        require(s.ref < module_.constants.size(), "no such constant");
        return;
      case Slot::Kind::kAlias: {
        require(!argument, "an argument's slot is out of place");
        SlotId at = i;
        for (size_t hops = 0; p.slots[at].kind == Slot::Kind::kAlias; ++hops) {
          at = p.slots[at].ref;
          require(at < p.slots.size() && hops < p.slots.size(), "an alias has no end");
        }
        return;
      }
    }
    require(false, "no such kind of slot");
  }

  void writes(SlotId id) {
    slot(id);
    const Slot& root = at_->slots[root_slot(*at_, id)];
    require(root.kind != Slot::Kind::kConstant, "a step writes a constant");
    if (root.kind == Slot::Kind::kArgument) written_.back()[root.ref] = true;
  }

  void check(const abi::LaunchStep& step, size_t) const {
    require(step.kernel < module_.kernels.size(), "no such kernel");
    for (SlotId id : step.buffers) slot(id);
    dims(step.dims);
    for (DimId id : {step.grid, step.scratch_bytes, step.bytes_per_index, step.ops_per_index}) {
      dim(id);
    }
  }

  void check(const abi::CallStep& step, size_t caller) {
    require(step.program < caller, "a call of a program that does not stand before");
    const Program& callee = module_.programs[step.program];
    require(step.arguments.size() == callee.arguments && step.results.size() == callee.results,
            "a call with another number of arguments or results");
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      slot(step.arguments[i]);
      if (written_[step.program][i]) writes(step.arguments[i]);
    }
    for (size_t i = 0; i < step.results.size(); ++i) {
      slot(step.results[i]);
      if (!passed_through(step, callee, i)) writes(step.results[i]);
    }
  }

  // Whether result `i` is the memory of an argument of the call already: nothing is copied.
  bool passed_through(const abi::CallStep& step, const Program& callee, size_t i) const {
    const Slot& root = callee.slots[root_slot(callee, static_cast<SlotId>(callee.arguments + i))];
    return root.kind == Slot::Kind::kArgument &&
           root_slot(*at_, step.arguments[root.ref]) == root_slot(*at_, step.results[i]);
  }

  void check(const abi::CopyStep& step, size_t) {
    slot(step.from);
    writes(step.to);
  }

  void check(const abi::EvalStep& step, size_t) {
    for (SlotId id : step.operands) slot(id);
    for (SlotId id : step.results) writes(id);
  }

  const Module& module_;
  const std::vector<bool>& writable_;
  std::vector<std::vector<bool>> written_;  // per program: arguments that its steps write
  const Program* at_ = nullptr;
};

}  // namespace

SlotId root_slot(const Program& program, SlotId slot) {
  while (program.slots[slot].kind == Slot::Kind::kAlias) slot = program.slots[slot].ref;
  return slot;
}

void check_module(const Module& module, const std::vector<bool>& writable) {
  Checker(module, writable).run();
}

}  // namespace tenon::runtime
