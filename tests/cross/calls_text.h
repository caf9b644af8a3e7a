// Calls of saved programs as text, so that machines and versions can be compared.
#pragma once

#include <string>

#include "tenon/program/program.h"

namespace tenon {

// Calls the program on made-up arguments and weights, the same everywhere, with each name of a
// dimension at 0, 1, 5 and 37. One line a result and written argument: type, the bits of its first
// 64 bytes, a digest of all.
std::string calls_text(program::Program program);

}  // namespace tenon
