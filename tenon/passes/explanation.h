// What fusion did, for people: one line each.
#pragma once

#include <string>

namespace tenon::passes {

struct Explanation {
  // @step loops mul·erf·add → f32[4]
  std::string groups;
  // Values between two groups, and why: @step exp → matmul_packed: f32[4, 4] in memory,
  // matmul_packed reads whole operands
  std::string apart;
};

}  // namespace tenon::passes
