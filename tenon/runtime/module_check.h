// Whether a module is what the executor relies on. Modules come from the compiler, and from files
// that may hold anything.
#pragma once

#include "tenon/abi/module.h"

namespace tenon::runtime {

// Raises ValueError naming the first place that is wrong: every index in range, calls only to
// earlier programs and with their numbers of arguments and results, aliases without cycles, steps
// in order, no step writing a constant, the entry and its bodies writing only arguments listed in
// `writable`, the setup none. Sizes are checked later, with the numbers of a call. What machine
// code does with its buffers cannot be checked.
void check_module(const abi::Module& module, const std::vector<bool>& writable);

// The slot whose memory `slot` is, through aliases.
abi::SlotId root_slot(const abi::Program& program, abi::SlotId slot);

}  // namespace tenon::runtime
