#include "tenon/compiler/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/base/error.h"
#include "tenon/codegen/loop_steps.h"
#include "tenon/ir/op_def.h"
#include "tenon/program/inspect.h"
#include "tenon/runtime/array.h"
#include "tenon/runtime/cpu.h"
#include "tenon/runtime/dim_program.h"
#include "tenon/runtime/plan.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::compiler {
namespace {

constexpr size_t kLongExpression = 60;  // characters

// Names of the machine become its numbers.
Dim on_this_machine(const Dim& dim) {
  if (dim.is_static()) return dim;
  static const runtime::SymbolTable names;
  static const std::vector<int64_t> values = runtime::SymbolTable::machine_values();
  return dim.substitute([](std::string_view name) -> std::optional<Dim> {
    const uint32_t* index = names.find(name);
    if (index == nullptr) return std::nullopt;
    return Dim(values[*index]);
  });
}

std::string size_text(const Dim& bytes) {
  if (bytes.is_static()) return program::bytes_text(static_cast<uint64_t>(bytes.value()));
  std::string text = bytes.str();
  if (text.size() > kLongExpression) return "a size of the names";
  return (text.find(' ') == std::string::npos ? text : "(" + text + ")") + " B";
}

std::string joined(const std::vector<std::string>& names) {
  return names.empty() ? "code" : fmt::format("{}", fmt::join(names, "·"));
}

// Left-aligned columns; cells may hold characters of several bytes.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent) const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string out;
    for (const auto& row : rows_) {
      out += indent;
      for (size_t i = 0; i < row.size(); ++i) {
        out += row[i];
        if (i + 1 < row.size()) out += std::string(widths[i] - width(row[i]) + 2, ' ');
      }
      out += '\n';
    }
    return out;
  }

 private:
  static size_t width(const std::string& text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  std::vector<std::vector<std::string>> rows_;
};

class Explainer {
 public:
  Explainer(const Compiled& compiled, const runtime::Executor& executor)
      : compiled_(compiled),
        module_(*compiled.module),
        level_(executor.level()),
        sizes_(executor.recent_sizes()) {
    passes::Options options = compiled.passes;
    options.explain = true;
    options.print_after = nullptr;
    lowered_ = passes::lower(compiled.graph, options);
    check_internal(lowered_.kernels.size() == module_.kernels.size(),
                   "a graph lowers to other kernels than before");
    count_calls();
  }

  std::string run(const std::string& title, double trace_ms) const {
    return head(title, trace_ms) + programs() + section("groups", lowered_.explanation.groups) +
           section("not fused", lowered_.explanation.apart) + memory() + phases(trace_ms);
  }

 private:
  const Dim& dim(abi::DimId id) const { return module_.dims[id]; }
  Dim bytes(const abi::Program& program, abi::SlotId slot) const {
    return on_this_machine(dim(program.slots[slot].bytes));
  }

  // Programs that a call of the entry runs, it first; how often one call of it runs each.
  void count_calls() {
    std::map<uint32_t, int64_t> counts{{module_.entry, 1}};
    for (uint32_t p = module_.entry + 1; p-- > 0;) {
      const auto it = counts.find(p);
      if (it == counts.end()) continue;
      for (const abi::Step& step : module_.programs[p].steps) {
        if (auto* call = std::get_if<abi::CallStep>(&step)) counts[call->program] += it->second;
      }
    }
    for (auto it = counts.rbegin(); it != counts.rend(); ++it) order_.emplace_back(*it);
  }

  std::string head(const std::string& title, double trace_ms) const {
    double passes = 0;
    double emit = 0;
    for (const passes::PhaseTime& time : compiled_.times) {
      (time.name == "emit" ? emit : passes) += time.ms;
    }
    const size_t kernels = module_.kernels.size();
    std::string cached;
    if (compiled_.kernels_from_cache > 0) {
      cached = fmt::format(", {} from the cache", compiled_.kernels_from_cache);
    }
    return fmt::format(
        "{}     {} kernel{}{}, {} scratch, compiled in {:.1f} ms (trace {:.1f}, passes {:.1f}, "
        "emit {:.1f})\n",
        title, kernels, kernels == 1 ? "" : "s", cached, size_text(peak()),
        trace_ms + passes + emit, trace_ms, passes, emit);
  }

  // --- steps ---
  std::string programs() const {
    std::string text;
    const bool many = order_.size() > 1 || module_.setup != abi::Module::kNoProgram;
    for (const auto& [p, times] : order_) {
      if (many) {
        text += fmt::format("  @{}{}\n", module_.programs[p].name,
                            p == module_.entry ? "" : fmt::format(", run {} times a call", times));
      }
      text += steps(p, many ? "    " : "  ");
    }
    if (module_.setup != abi::Module::kNoProgram) {
      text += "  @setup, run once when weights are bound\n" + steps(module_.setup, "    ");
    }
    return text;
  }

  std::string steps(uint32_t p, const std::string& indent) const {
    const abi::Program& program = module_.programs[p];
    Table table;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      std::visit([&](const auto& step) { table.row(cells(step, p, i)); }, program.steps[i]);
    }
    return table.text(indent);
  }

  std::vector<std::string> cells(const abi::LaunchStep& step, uint32_t p, size_t at) const {
    const kir::Kernel& kernel = lowered_.kernels[step.kernel];
    return {kernel.name, joined(module_.kernels[step.kernel].origins),
            traffic(step, module_.programs[p]), loop(step, p, at)};
  }
  std::vector<std::string> cells(const abi::CallStep& step, uint32_t, size_t) const {
    return {"call", "@" + module_.programs[step.program].name};
  }
  std::vector<std::string> cells(const abi::CopyStep& step, uint32_t p, size_t) const {
    return {"copy", size_text(bytes(module_.programs[p], step.from))};
  }
  std::vector<std::string> cells(const abi::EvalStep& step, uint32_t, size_t) const {
    const ir::NodePtr node = lowered_.graphs[step.graph]->nodes()[step.node];
    return {"eval", std::string(node->op->name), "by its reference evaluation, 1 thread"};
  }

  static void find_loads(const kir::Block& block, std::set<uint32_t>& loaded) {
    for (const kir::Inst* inst : block.insts) {
      if (inst->op == kir::Op::kLoad) loaded.insert(inst->buffer);
      if (inst->loop) find_loads(inst->loop->body, loaded);
    }
  }

  std::string traffic(const abi::LaunchStep& step, const abi::Program& program) const {
    const kir::Kernel& kernel = lowered_.kernels[step.kernel];
    std::set<uint32_t> loaded;
    find_loads(kernel.body, loaded);
    Dim read = 0;
    Dim written = 0;
    std::set<abi::SlotId> seen;
    for (uint32_t b = 0; b < step.buffers.size(); ++b) {
      const Dim size = bytes(program, step.buffers[b]);
      if (loaded.count(b) > 0 && seen.insert(step.buffers[b]).second) read = read + size;
      if (kernel.buffers[b].written) written = written + size;
    }
    const Dim moved = on_this_machine(dim(step.bytes_per_index) * dim(step.grid));
    const char* part =
        Dim::less(moved, read + written) == std::optional<bool>(true) ? "up to " : "";
    return fmt::format("reads {}{}, writes {}{}", part, size_text(read), part, size_text(written));
  }

  std::string loop(const abi::LaunchStep& step, uint32_t p, size_t at) const {
    const codegen::LoopSteps steps =
        codegen::loop_steps(lowered_.kernels[step.kernel], codegen::isa_of_level(level_));
    std::string text = fmt::format("i < {}", on_this_machine(dim(step.grid)).str());
    if (steps.grid > 1) text += fmt::format(" by {}", steps.grid);
    if (!steps.inner.empty()) {
      text += fmt::format(", inner loops by {}", fmt::join(steps.inner, " and "));
    }
    return fmt::format("{} ({}), {}", text, runtime::short_name(level_), threads(p, at));
  }

  std::string threads(uint32_t p, size_t at) const {
    const int all = runtime::thread_count();
    const bool planned = sizes_.plan != nullptr && !sizes_.plan->programs[p].steps.empty();
    if (!planned) return fmt::format("up to {} thread{}", all, all == 1 ? "" : "s");
    const runtime::StepPlan& step = sizes_.plan->programs[p].steps[at];
    int64_t used = 1;
    if (step.chunk > 0 && step.chunk < step.grid) {
      used = std::min<int64_t>(all, (step.grid + step.chunk - 1) / step.chunk);
    }
    return fmt::format("{} thread{}", used, used == 1 ? "" : "s");
  }

  // --- memory ---
  // The largest sum of what lives at one step of the entry, callees' frames included.
  Dim peak() const {
    if (sizes_.plan != nullptr && sizes_.names.empty()) {
      return Dim(static_cast<int64_t>(sizes_.plan->programs[module_.entry].frame));
    }
    std::map<uint32_t, Dim> frames;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      frames[it->first] = peak_of(module_.programs[it->first], frames);
    }
    return frames.at(module_.entry);
  }

  Dim peak_of(const abi::Program& program, const std::map<uint32_t, Dim>& frames) const {
    Dim most = 0;
    for (uint32_t i = 0; i < program.steps.size(); ++i) {
      Dim live = 0;
      for (abi::SlotId s = 0; s < program.slots.size(); ++s) {
        const abi::Slot& slot = program.slots[s];
        const bool lives = slot.first <= i && i <= slot.last;
        if (slot.kind == abi::Slot::Kind::kTemp && lives) live = live + bytes(program, s);
      }
      if (auto* launch = std::get_if<abi::LaunchStep>(&program.steps[i])) {
        live = live +
               on_this_machine(dim(launch->scratch_bytes)) * Dim(int64_t{runtime::thread_count()});
      } else if (auto* call = std::get_if<abi::CallStep>(&program.steps[i])) {
        live = live + frames.at(call->program);
      }
      most = dim_max(most, live);
    }
    return most;
  }

  std::string memory() const {
    std::string text = "memory";
    if (!sizes_.names.empty()) text += fmt::format(", for {}", sizes_.names);
    if (sizes_.plan != nullptr) {
      const uint64_t frame = sizes_.plan->programs[module_.entry].frame;
      text += fmt::format(": {} in one arena", program::bytes_text(frame));
    } else {
      text += ": offsets are known when sizes are, at a call";
    }
    text += '\n';
    for (const auto& item : order_) text += slots(item.first);
    return text;
  }

  std::string slots(uint32_t p) const {
    const abi::Program& program = module_.programs[p];
    Table table;
    for (abi::SlotId s = 0; s < program.slots.size(); ++s) {
      const abi::Slot& slot = program.slots[s];
      if (slot.kind != abi::Slot::Kind::kTemp) continue;
      Shape shape;
      for (abi::DimId id : slot.dims) shape.push_back(on_this_machine(dim(id)));
      std::string size = size_text(bytes(program, s));
      if (sizes_.plan != nullptr) {
        const runtime::SlotPlan& plan = sizes_.plan->programs[p].slots[s];
        size = fmt::format("{} at {}", program::bytes_text(plan.bytes), plan.offset);
      }
      table.row({fmt::format("@{} m{}", program.name, s),
                 std::string(tenon::name(slot.dtype)) + tenon::str(shape), size,
                 fmt::format("steps {} to {}", slot.first, slot.last)});
    }
    for (size_t i = 0; i < program.steps.size(); ++i) {
      auto* launch = std::get_if<abi::LaunchStep>(&program.steps[i]);
      if (launch == nullptr || dim(launch->scratch_bytes) == Dim(0)) continue;
      std::string size = size_text(on_this_machine(dim(launch->scratch_bytes)));
      if (sizes_.plan != nullptr) {
        const runtime::StepPlan& plan = sizes_.plan->programs[p].steps[i];
        size = fmt::format("{} at {}", program::bytes_text(plan.scratch), plan.offset);
      }
      table.row({fmt::format("@{} {}", program.name, lowered_.kernels[launch->kernel].name),
                 "scratch of each thread", size, fmt::format("step {}", i)});
    }
    return table.text("  ");
  }

  // --- the rest ---
  static std::string section(const std::string& title, const std::string& lines) {
    std::string text = title + "\n";
    std::string last;
    int times = 0;
    auto put = [&] {
      if (times > 0)
        text += "  " + last + (times > 1 ? fmt::format(" ({} times)", times) : "") + "\n";
    };
    size_t begin = 0;
    while (begin < lines.size()) {
      const size_t end = lines.find('\n', begin);
      const std::string line = lines.substr(begin, end - begin);
      begin = end + 1;
      if (line != last) {
        put();
        times = 0;
        last = line;
      }
      ++times;
    }
    put();
    return lines.empty() ? text + "  nothing\n" : text;
  }

  std::string phases(double trace_ms) const {
    std::string text = "phases\n  ";
    text += fmt::format("trace {:.2f} ms", trace_ms);
    for (const passes::PhaseTime& time : compiled_.times) {
      text += fmt::format(", {} {:.2f} ms", time.name, time.ms);
    }
    return text + "\n";
  }

  const Compiled& compiled_;
  const abi::Module& module_;
  std::string level_;
  runtime::Executor::Sizes sizes_;
  passes::Lowered lowered_;
  std::vector<std::pair<uint32_t, int64_t>> order_;
};

}  // namespace

std::string explain(const Compiled& compiled, const runtime::Executor& executor,
                    const std::string& title, double trace_ms) {
  return Explainer(compiled, executor).run(title, trace_ms);
}

}  // namespace tenon::compiler
