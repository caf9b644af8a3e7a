// What is inside an artifact, for people.
#pragma once

#include <string>

#include "tenon/program/artifact.h"

namespace tenon::program {

// Signature, guards, weights, graph and code of every program, and whether the digests are right.
// With `guards` every guard and weight stands on a line of its own. Executes nothing. Raises
// FormatError for the first section that is damaged.
std::string inspect_text(const Artifact& artifact, bool guards = false);

// "612 B", "3.1 KB", "98.4 MB": powers of 1000.
std::string bytes_text(uint64_t bytes);

}  // namespace tenon::program
