// Random graphs for differential tests: every op of the table that pulls, calls of bodies, writable
// parameters, external data, named dimensions. What is random is a function of the seed alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tenon/base/literal.h"
#include "tenon/ir/graph.h"

namespace tenon::fuzz {

// How closely two right evaluations agree.
struct Closeness {
  bool exact = true;    // bit for bit
  double absolute = 0;  // else: at most this far apart
};

struct RandomGraph {
  ir::GraphPtr graph;
  std::vector<Literal> arguments;
  std::map<std::string, Literal> externals;
  std::vector<Closeness> outputs;  // for each of graph->outputs()
};

RandomGraph random_graph(uint64_t seed);

// Empty when they agree, else what differs first.
std::string difference(const Literal& wanted, const Literal& got, const Closeness& closeness);

}  // namespace tenon::fuzz
