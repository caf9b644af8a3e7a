// tenon ir: a graph after any pass.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "tenon/base/error.h"
#include "tenon/cli/command.h"
#include "tenon/ir/text.h"
#include "tenon/kir/kernel.h"
#include "tenon/ops/registry.h"
#include "tenon/passes/pipeline.h"
#include "tenon/program/artifact.h"

namespace tenon::cli {
namespace {

struct IrOptions {
  std::string path;
  std::string program;
  std::string after;
  std::vector<std::string> skip;
  bool generic = false;
  bool locations = false;
  bool full_constants = false;
  bool list_passes = false;
  bool times = false;
};

constexpr const char* kLower = "lower";

ir::GraphPtr read_graph(const std::string& path, const std::string& program) {
  if (program::is_artifact(path)) {
    const auto artifact = program::Artifact::open(path);
    return artifact->graph(artifact->find(program));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(path + ": cannot open");
  std::stringstream text;
  text << file.rdbuf();
  try {
    return ir::parse(text.str());
  } catch (const FormatError& error) {
    throw FormatError(path + ":" + error.message(), error.parts());
  }
}

void check_pass(const std::string& name) {
  if (name == kLower) return;
  const auto& passes = passes::graph_passes();
  bool known = std::any_of(passes.begin(), passes.end(),
                           [&](const passes::GraphPass& pass) { return pass.name == name; });
  if (!known) {
    throw ValueError(fmt::format("ir: unknown pass '{}'", name),
                     {.hint = "tenon ir --list-passes names them"});
  }
}

void list_passes() {
  for (const passes::GraphPass& pass : passes::graph_passes()) {
    fmt::print("{:<18} {}\n", pass.name, pass.doc);
  }
  fmt::print("{:<18} {}\n", kLower, "Groups, kernels, memory plan: prints kernels and programs.");
}

void print_times(const std::vector<passes::PhaseTime>& times) {
  for (const passes::PhaseTime& time : times) {
    fmt::print(stderr, "{:<18} {:8.3f} ms\n", time.name, time.ms);
  }
}

void run_ir(const IrOptions& options) {
  if (options.list_passes) return list_passes();
  if (options.path.empty()) throw CLI::RequiredError("FILE");
  ops::register_all();
  ir::GraphPtr graph = read_graph(options.path, options.program);
  passes::Options pipeline;
  pipeline.skip = options.skip;
  for (const std::string& name : options.skip) check_pass(name);
  if (!options.after.empty()) check_pass(options.after);
  if (options.after == kLower) {
    pipeline.explain = true;
    passes::Lowered lowered = passes::lower(graph, pipeline);
    for (const kir::Kernel& kernel : lowered.kernels) fmt::print("{}\n", kir::print(kernel));
    fmt::print("{}{}", lowered.explanation.groups, lowered.explanation.apart);
    if (options.times) print_times(lowered.times);
    return;
  }
  if (!options.after.empty()) {
    pipeline.stop_after = options.after;
    std::vector<passes::PhaseTime> times;
    graph = passes::run_graph_passes(graph, pipeline, &times);
    if (options.times) print_times(times);
  }
  ir::PrintOptions print;
  print.generic = options.generic;
  print.locations = options.locations;
  print.full_constants = options.full_constants;
  fmt::print("{}", ir::print(graph, print));
}

}  // namespace

void add_ir(CLI::App& app) {
  auto options = std::make_shared<IrOptions>();
  CLI::App* command = add_command(app, "ir", "Prints a graph after any pass of the compiler",
                                  "tenon ir step.tenon --after lower");
  command->add_option("FILE", options->path, "a graph's text (.ir) or an artifact (.tenon)");
  command->add_option("--program", options->program, "which program of an artifact that has many");
  command->add_option("--after", options->after, "stop after this pass (lower: print kernels)");
  command->add_option("--skip", options->skip, "leave this pass out (repeatable)");
  command->add_flag("--generic", options->generic, "the form that mlir-opt reads");
  command->add_flag("--locations", options->locations, "with file, line and layer of each op");
  command->add_flag("--full-constants", options->full_constants, "do not shorten constants");
  command->add_flag("--list-passes", options->list_passes, "name the passes in order");
  command->add_flag("--times", options->times, "each phase's time, on stderr");
  command->callback([options] { run_ir(*options); });
}

}  // namespace tenon::cli
