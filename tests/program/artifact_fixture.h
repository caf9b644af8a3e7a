// Programs made by hand, for the tests of artifacts.
#pragma once

#include <string>

#include "tenon/program/artifact.h"

namespace tenon::program {

// step(x: f32["n", 4], gain = 2.0) → f32["n", 4]: x * 2 + w with the external w: f32[4], a constant
// of 400 elements that is read, and a plan of one evaluated step per node.
ProgramData make_step(const std::string& name = "step", bool with_module = true);

std::string temporary_path(const std::string& name);
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

}  // namespace tenon::program
