// The interpreter: the meaning of a graph, by each op's reference evaluation. It is the oracle of
// the tests and runs programs where no machine code fits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/base/literal.h"
#include "tenon/ir/graph.h"
#include "tenon/ir/op_def.h"

namespace tenon::interp {

// The data of an external constant, by its whole name. Raises KeyError for a name it lacks.
using Externals = std::function<Literal(const std::string& name)>;

// Runs `graph` on one literal per parameter. Names of dimensions are bound from the arguments'
// shapes: ShapeError [argument_dim] where they disagree with the parameters. Returns outputs():
// results, then the new values of updates. An op's error carries the place where it was made.
std::vector<Literal> run(const ir::Graph& graph, std::span<const Literal> arguments,
                         const Externals& externals = {});

// For a program whose machine code failed a check, which knows neither values nor places: raises
// the error that this run raises on the same arguments (op, index, size, the user's line). Returns
// when `failed` is of another kind, when the run is long (2^28 element operations) or reads
// an external constant that is not given, and when the arguments no longer show the failure because
// the program has written them.
void explain_failure(const Error& failed, const ir::Graph& graph,
                     std::span<const Literal> arguments, const Externals& externals = {});

// Evaluates one node that is not structural, with dimensions given by `symbols`.
std::vector<Literal> evaluate(const ir::Node& node, std::span<const Literal> operands,
                              const Dim::Lookup& symbols = {});

}  // namespace tenon::interp
