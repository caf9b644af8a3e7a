#pragma once

namespace tenon::program {

// Of the Tenon that writes artifacts: their provenance.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace tenon::program
