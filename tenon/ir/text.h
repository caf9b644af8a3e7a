// Text form of graphs: MLIR's syntax. Two forms, both read back to the same graph:
//
//   tn.module {
//     tn.graph @step(%x: tensor<["batch", 64], f32>, %c: buffer<[3], f32>) -> tensor<["batch"],
//     f32> {
//       %0 = tn.constant 2.0 : f32
//       %1 = tn.mul %x, %0
//       %2 = tn.sum %1 {axes = [1], keepdims = false} : tensor<["batch"], f32>
//       tn.update %c, %2
//       tn.return %2
//     }
//   }
//
// and the generic form that `mlir-opt --allow-unregistered-dialect` reads. docs/ir.md has the
// grammar. Attributes equal to their default are not printed. A result type is printed where it is
// not the (broadcast, promoted) type of the operands.
#pragma once

#include <string>
#include <string_view>

#include "tenon/ir/graph.h"

namespace tenon::ir {

struct PrintOptions {
  bool generic = false;
  bool locations = false;  // loc("model.cpp":12:8) and the layer path
  bool full_constants =
      false;  // else constants over 16 elements print as #n elements, digest, first and last
};

// The whole module: every reachable body once, callees first, the graph itself last.
std::string print(const GraphPtr& graph, const PrintOptions& options = {});

// Reads either form; the last graph is returned. Raises FormatError "line:column: …" with what was
// expected and what stands there. Elided constants cannot be read back: FormatError says so.
GraphPtr parse(std::string_view text);

// Number of nodes with that op name, calls' bodies counted once ("mul", not "tn.mul").
int64_t count(const GraphPtr& graph, std::string_view op_name);

// Canonical text for sharing and caching: full constants by digest, no names, no locations.
std::string canonical(const GraphPtr& graph);

}  // namespace tenon::ir
