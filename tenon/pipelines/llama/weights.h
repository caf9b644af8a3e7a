// The weights of a GGUF file as tensors, decoded once.
#pragma once

#include <functional>
#include <string>

#include "tenon/formats/gguf.h"
#include "tenon/frontend/executable.h"

namespace tenon::pipelines {

// Called with bytes of the file decoded so far and in all.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Decodes tensors of a file to `dtype` (f32 or bf16; one-dimensional tensors always to f32) on all
// threads. The file must outlive it.
class WeightDecoder {
 public:
  // Raises ValueError for another dtype.
  WeightDecoder(const formats::GgufFile& file, DType dtype, Progress progress = {});
  // Raises FormatError when the file has no such tensor.
  Tensor decode(const std::string& name);

 private:
  const formats::GgufFile& file_;
  DType dtype_;
  Progress progress_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

// Every tensor of the file by its name.
Weights decode_weights(const formats::GgufFile& file, DType dtype, const Progress& progress = {});

}  // namespace tenon::pipelines
