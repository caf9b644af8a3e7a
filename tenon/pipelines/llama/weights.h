// The weights of a GGUF file as tensors, decoded once.
#pragma once

#include <functional>

#include "tenon/formats/gguf.h"
#include "tenon/frontend/executable.h"

namespace tenon::pipelines {

// Called with bytes of the file decoded so far and in all; from any thread, in order.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Every tensor of the file by its name, decoded to `dtype` (f32 or bf16; one-dimensional tensors
// always to f32) on all threads. Raises ValueError for another dtype.
Weights decode_weights(const formats::GgufFile& file, DType dtype, const Progress& progress = {});

}  // namespace tenon::pipelines
