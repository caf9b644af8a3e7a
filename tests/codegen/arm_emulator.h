// AArch64 code under qemu's user emulation, where the build found what that takes.
#pragma once

#include "kernel_harness.h"

namespace tenon::codegen::test {

bool has_arm_emulator();

// Runs one call of the image's entry `k` in an emulated process, which is kept for later calls.
// Raises std::runtime_error when the process ends: the code crashed.
Call run_emulated(const Image& image, size_t k, const Call& call);

}  // namespace tenon::codegen::test
