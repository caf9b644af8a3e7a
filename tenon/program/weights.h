// The weights of a program: external constants, whose data is bound by name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/base/dim.h"
#include "tenon/base/dtype.h"
#include "tenon/ir/graph.h"
#include "tenon/runtime/array.h"

namespace tenon::program {

// A weight that a program reads, by its whole name.
struct Weight {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// Data of weights by name. Arrays share memory: nothing is copied.
using ExternalArrays = std::map<std::string, runtime::Array>;

// Gives a weight when a program needs it.
using WeightSource = std::function<runtime::Array(const Weight& weight)>;

// Every external constant that a graph and the bodies it calls ask for, under their calls'
// prefixes, in the order of first use. Raises ValueError [weight_twice] when one name stands for
// two types.
std::vector<Weight> externals_of(const ir::GraphPtr& graph);

// Compares data with what `function` reads, and raises at the first difference:
//   missing names, all at once             KeyError    [weight_missing]
//   another dtype or shape, or no memory   ValueError  [weight_type]
//   a name that nothing reads              KeyError    [weight_unused], with the nearest name
TENON_API void check_weights(const std::string& function, const std::vector<Weight>& weights,
                             const ExternalArrays& given);
// The second of these, for one weight.
void check_weight(const std::string& function, const Weight& weight, const runtime::Array& array);

// Weights of `function` by their names, from `source`; `weights` and `source` outlive it. Raises
// what check_weight raises, FormatError for a name that is none of theirs.
using NamedSource = std::function<runtime::Array(const std::string& name)>;
NamedSource by_name(const std::string& function, const std::vector<Weight>& weights,
                    const WeightSource& source);

// What several programs read together.
struct SharedWeights {
  std::string functions;        // "prompt, decode"
  std::vector<Weight> weights;  // each once

  // Raises ValueError [weight_twice] for a name that stands for two types in two programs: before
  // any of them is bound.
  void add(const std::string& function, const std::vector<Weight>& read);
  void check(const ExternalArrays& given) const { check_weights(functions, weights, given); }
};

}  // namespace tenon::program
