// run_saved FILE: the calls of every program of an artifact, each after its name and level. One
// source, built for this machine and for others.
#include <cstdio>
#include <string>

#include "calls_text.h"
#include "tenon/base/error.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto artifact = tenon::program::Artifact::open(argv[1]);
    for (const tenon::program::ProgramInfo& info : artifact->programs()) {
      const std::string& name = info.signature.function;
      const auto program = tenon::program::Program::load(artifact, {.program = name});
      std::printf("%s %s\n", name.c_str(), program.level().c_str());
      std::printf("%s", tenon::calls_text(program).c_str());
    }
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
