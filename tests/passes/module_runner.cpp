#include "module_runner.h"

#include <cstring>

#include "tenon/base/error.h"
#include "tenon/interp/interpreter.h"
#include "tenon/kir/evaluate.h"

namespace tenon::passes_test {
namespace {

constexpr int kPoison = 0xa7;

Literal clone(const Literal& from) {
  Literal to(from.dtype(), from.dims());
  if (from.bytes() > 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
  return to;
}

class Runner {
 public:
  Runner(const passes::Lowered& lowered, const ir::Graph& graph, std::span<const Literal> arguments)
      : lowered_(lowered), module_(lowered.module) {
    symbols_ = {
        {"_threads", 2}, {"_l1_bytes", 32768}, {"_l2_bytes", 1 << 20}, {"_l3_bytes", 16 << 20}};
    for (size_t i = 0; i < graph.params.size(); ++i) {
      const Shape& shape = graph.params[i].shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d].is_symbol()) symbols_.emplace(shape[d].symbol(), arguments[i].dims()[d]);
      }
    }
    for (const Dim& dim : module_.dims) {
      try {
        dims_.push_back(dim.eval(lookup()));
      } catch (const Error&) {
        dims_.push_back(-1);  // a dimension that no step of this call needs
      }
    }
  }

  std::vector<int64_t> values(const std::vector<abi::DimId>& ids) const {
    std::vector<int64_t> out;
    for (abi::DimId id : ids) out.push_back(dims_[id]);
    return out;
  }

  // Memory for each result of a program, in order; empty where the result is an argument's.
  std::vector<Literal> result_memory(uint32_t index) const {
    const abi::Program& program = module_.programs[index];
    std::vector<Literal> results;
    for (uint32_t i = 0; i < program.results; ++i) {
      const abi::Slot& slot = program.slots[program.arguments + i];
      results.emplace_back(slot.dtype, values(slot.dims));
      std::memset(results.back().mutable_data(), kPoison, results.back().bytes());
    }
    return results;
  }

  void run(uint32_t index, std::vector<std::byte*> arguments, std::vector<std::byte*> results) {
    const abi::Program& program = module_.programs[index];
    std::vector<std::byte*> memory(program.slots.size());
    std::vector<std::vector<std::byte>> temps(program.slots.size());
    for (size_t s = 0; s < program.slots.size(); ++s) {
      const abi::Slot& slot = program.slots[s];
      switch (slot.kind) {
        case abi::Slot::Kind::kArgument: memory[s] = arguments[slot.ref]; break;
        case abi::Slot::Kind::kResult: memory[s] = results[slot.ref]; break;
        case abi::Slot::Kind::kConstant:
          memory[s] = const_cast<std::byte*>(module_.constants[slot.ref].data());
          break;
        case abi::Slot::Kind::kTemp:
          temps[s].assign(static_cast<size_t>(dims_[slot.bytes]) + 64, std::byte{kPoison});
          memory[s] = temps[s].data();
          break;
        case abi::Slot::Kind::kAlias: break;
      }
    }
    auto resolve = [&](abi::SlotId s) {
      while (program.slots[s].kind == abi::Slot::Kind::kAlias) s = program.slots[s].ref;
      return s;
    };
    for (size_t s = 0; s < program.slots.size(); ++s) {
      memory[s] = memory[resolve(static_cast<abi::SlotId>(s))];
    }
    for (uint32_t at = 0; at < program.steps.size(); ++at) {
      step(program, program.steps[at], memory);
      for (size_t s = 0; s < program.slots.size(); ++s) {
        const abi::Slot& slot = program.slots[s];
        if (slot.kind != abi::Slot::Kind::kTemp || (slot.first <= at && at < slot.last)) continue;
        std::memset(temps[s].data(), kPoison, temps[s].size());
      }
    }
  }

 private:
  Dim::Lookup lookup() const {
    return [this](std::string_view name) -> std::optional<int64_t> {
      auto it = symbols_.find(std::string(name));
      if (it == symbols_.end()) return std::nullopt;
      return it->second;
    };
  }

  void step(const abi::Program& program, const abi::Step& step, std::vector<std::byte*>& memory) {
    if (const auto* launch = std::get_if<abi::LaunchStep>(&step)) {
      this->launch(*launch, memory);
    } else if (const auto* copy = std::get_if<abi::CopyStep>(&step)) {
      std::memmove(memory[copy->to], memory[copy->from],
                   static_cast<size_t>(dims_[program.slots[copy->to].bytes]));
    } else if (const auto* call = std::get_if<abi::CallStep>(&step)) {
      std::vector<std::byte*> arguments;
      std::vector<std::byte*> results;
      for (abi::SlotId slot : call->arguments) arguments.push_back(memory[slot]);
      for (abi::SlotId slot : call->results) results.push_back(memory[slot]);
      run(call->program, arguments, results);
    } else {
      evaluate(program, std::get<abi::EvalStep>(step), memory);
    }
  }

  void launch(const abi::LaunchStep& launch, const std::vector<std::byte*>& memory) {
    std::vector<void*> buffers;
    for (abi::SlotId slot : launch.buffers) buffers.push_back(memory[slot]);
    const std::vector<int64_t> dims = values(launch.dims);
    std::vector<std::byte> scratch(static_cast<size_t>(dims_[launch.scratch_bytes]) + 64);
    int64_t status = 0;
    const kir::EvalArgs args{buffers.data(), dims.data(), scratch.data(), &status};
    const int64_t grid = dims_[launch.grid];
    const int64_t middle = grid / 3;
    const kir::Kernel& kernel = lowered_.kernels[launch.kernel];
    if (middle < grid) kir::evaluate(kernel, args, middle, grid);
    if (middle > 0) kir::evaluate(kernel, args, 0, middle);
    if (status != 0) throw IndexError(fmt::format("kernel check {} failed", status));
  }

  void evaluate(const abi::Program& program, const abi::EvalStep& eval,
                const std::vector<std::byte*>& memory) {
    std::vector<Literal> operands;
    for (abi::SlotId id : eval.operands) {
      const abi::Slot& slot = program.slots[id];
      operands.push_back(
          clone(Literal::borrow(slot.dtype, values(slot.dims), memory[id], nullptr)));
    }
    const ir::NodePtr node = lowered_.graphs[eval.graph]->nodes()[eval.node];
    const std::vector<Literal> results = interp::evaluate(*node, operands, lookup());
    for (size_t i = 0; i < results.size(); ++i) {
      std::memcpy(memory[eval.results[i]], results[i].data(), results[i].bytes());
    }
  }

  const passes::Lowered& lowered_;
  const abi::Module& module_;
  std::map<std::string, int64_t> symbols_;
  std::vector<int64_t> dims_;
};

std::vector<std::byte*> pointers(std::vector<Literal>& literals) {
  std::vector<std::byte*> out;
  for (Literal& literal : literals) out.push_back(literal.mutable_data());
  return out;
}

}  // namespace

ir::GraphPtr graph_of(const ir::Value& x, const ir::Value& result) {
  ir::Graph made;
  made.name = "f";
  made.params = {x};
  made.param_names = {"x"};
  made.writable = {false};
  made.results = {result};
  return std::make_shared<const ir::Graph>(std::move(made));
}

std::vector<Literal> run_module(const passes::Lowered& lowered, const ir::Graph& graph,
                                std::span<const Literal> arguments, const Externals& externals) {
  Runner runner(lowered, graph, arguments);
  std::vector<Literal> given;
  for (const Literal& argument : arguments) given.push_back(clone(argument));
  std::vector<Literal> extra;
  for (const abi::External& external : lowered.module.externals) {
    extra.push_back(clone(externals.at(external.name)));
  }
  std::vector<Literal> setup_results;
  std::vector<std::byte*> entry_arguments = pointers(given);
  const abi::Module& module = lowered.module;
  if (module.setup == abi::Module::kNoProgram) {
    for (Literal& literal : extra) entry_arguments.push_back(literal.mutable_data());
  } else {
    setup_results = runner.result_memory(module.setup);
    runner.run(module.setup, pointers(extra), pointers(setup_results));
    const abi::Program& setup = module.programs[module.setup];
    for (uint32_t i = 0; i < setup.results; ++i) {
      const abi::Slot& slot = setup.slots[setup.arguments + i];
      Literal& memory = slot.kind == abi::Slot::Kind::kAlias ? extra[setup.slots[slot.ref].ref]
                                                             : setup_results[i];
      entry_arguments.push_back(memory.mutable_data());
    }
  }
  std::vector<Literal> results = runner.result_memory(module.entry);
  runner.run(module.entry, entry_arguments, pointers(results));
  for (size_t i = 0; i < given.size(); ++i) {
    const bool updated = std::any_of(graph.updates.begin(), graph.updates.end(),
                                     [&](const ir::Update& update) { return update.param == i; });
    check_internal(updated || given[i].same(arguments[i]), "an argument was overwritten");
  }
  for (const ir::Update& update : graph.updates) results.push_back(given[update.param]);
  return results;
}

}  // namespace tenon::passes_test
