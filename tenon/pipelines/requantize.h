// GGUF files with their matrices in another block format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tenon/formats/gguf.h"

namespace tenon::pipelines {

struct RequantizeOptions {
  const quant::BlockFormat* format = nullptr;  // of every matrix
  // Of the matrix that gives the logits: `output.weight`, or `token_embd.weight` in a file without
  // one. Null: as the others.
  const quant::BlockFormat* output_format = nullptr;
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes read
};

// What became of the tensors of one format.
struct RequantizedGroup {
  const quant::BlockFormat* from;
  const quant::BlockFormat* to;
  bool instead = false;  // `to` stands for the wanted format, whose blocks do not divide the rows
  int64_t tensors = 0;
};

struct RequantizeReport {
  uint64_t bytes = 0;  // of the file written
  uint64_t elements = 0;
  std::vector<RequantizedGroup> groups;  // in the order in which they are first met
};

// The format for rows of `columns`: `wanted` where its blocks divide them, else the one that
// llama.cpp takes in its place (Q4_K: Q5_0, Q5_K: Q5_1, Q6_K: Q8_0), and F16 where blocks of 32 do
// not divide them either.
const quant::BlockFormat& format_for_columns(const quant::BlockFormat& wanted, int64_t columns);

// Writes `file` to `path`, atomically, with every tensor of two or more dimensions in the wanted
// format; tensors of one dimension, and those that have the format already, keep their bytes.
// Metadata is kept, but for `general.file_type` and `general.quantization_version`. Works on all
// threads. Raises ValueError naming the tensor for weights that the format cannot hold (not finite,
// or beyond f16), IoError.
RequantizeReport requantize(const formats::GgufFile& file, const std::string& path,
                            const RequantizeOptions& options);

}  // namespace tenon::pipelines
