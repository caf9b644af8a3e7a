// Which forms of a kernel the levels to come need.
#pragma once

#include <cstdint>

namespace tenon::passes {

// Vector registers of the levels: 32 of each, fewer of each, or some levels of both kinds.
enum class Registers : uint8_t { kMany, kFew, kBoth };

}  // namespace tenon::passes
