// What a program became, for people.
//
//   gelu(f32[32, 1000, 4096]) → f32[32, 1000, 4096]     1 kernel, 0 B scratch, compiled in 11.0 ms
//   (trace 0.1, passes 0.3, emit 10.6)
//     k0  mul·erf·add·mul·mul   reads 524.3 MB, writes 524.3 MB   i < 131072000 by 16 (avx512), 2
//     threads
//   groups
//     @gelu loops mul·erf·add·mul·mul → f32[32, 1000, 4096]
//   not fused
//     nothing
//   memory
//     0 B
//   phases
//     trace 0.10 ms, canonicalize 0.03 ms, …
//
// (Lines are not broken.) A kernel's line says what it fuses; the buffers that it reads and writes
// ("up to" when it touches a part of them); its grid and how many elements an iteration takes; how
// many threads share it. Bodies follow the entry, each under its name; `setup` packs weights once.
// Sizes are expressions of the names where a program has names; the memory plan and the threads are
// those of the newest call. "not fused" says for each value between two groups why it goes through
// memory. scratch: temporaries and scratch rows, the peak of what lives at one time.
#pragma once

#include <string>

#include "tenon/compiler/compile.h"
#include "tenon/runtime/executor.h"

namespace tenon::compiler {

// `title`: the first line begins with it. `trace_ms`: 0 when there was no trace. Lowers the graph
// once more.
std::string explain(const Compiled& compiled, const runtime::Executor& executor,
                    const std::string& title, double trace_ms);

}  // namespace tenon::compiler
