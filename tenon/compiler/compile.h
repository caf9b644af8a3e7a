// The driver: graph → module with machine code, through the caches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenon/abi/module.h"
#include "tenon/ir/graph.h"
#include "tenon/passes/pipeline.h"

namespace tenon::compiler {

struct Options {
  // Levels to emit code for: "x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4-dot",
  // "x86-64-v4-amx", "aarch64". Empty:
  // the best that this CPU runs, or what TENON_ISA forces. A level whose extras no kernel uses is
  // replaced by the one it adds to.
  std::vector<std::string> levels;
  passes::Options passes;
  bool disk_cache = true;  // TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon
  bool keep_kernel_text = false;  // for explain() and `tenon ir`
};

struct Compiled {
  std::shared_ptr<const abi::Module> module;
  ir::GraphPtr graph;                // the graph given, for portable evaluation of the whole
  std::vector<ir::GraphPtr> graphs;  // what EvalStep::graph indexes
  std::vector<passes::PhaseTime> times;
  int kernels_from_cache = 0;
  passes::Options passes;  // as given
};

// Thread-safe. Raises what the passes raise.
Compiled compile(const ir::GraphPtr& graph, const Options& options = {});

}  // namespace tenon::compiler
