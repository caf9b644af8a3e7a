// The weights of a GGUF file as tensors: as they stand in the file, or decoded once.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tenon/formats/gguf.h"
#include "tenon/frontend/executable.h"
#include "tenon/frontend/quantized.h"

namespace tenon::pipelines {

// Called with bytes of the file read so far and in all.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// How programs take the model's matrices.
struct MatrixForm {
  // Decoded to one dtype, f32 or bf16.
  MatrixForm(DType decoded) : dtype(decoded) {}  // NOLINT(google-explicit-constructor)
  // As they stand in `file`, multiplied in this way.
  static MatrixForm of_file(const formats::GgufFile& file,
                            Activations activations = Activations::kInt8);

  // Null for a matrix that is decoded.
  const std::string* encoding(const std::string& name) const;

  DType dtype;
  std::map<std::string, std::string> encodings = {};  // of matrices by their names
  Activations activations = Activations::kInt8;
};

// Gives tensors of a file in a form: matrices with an encoding are the file's own bytes (u8),
// others are decoded on all threads, those of one dimension always to f32. The file must outlive
// it.
class WeightDecoder {
 public:
  // Raises ValueError for another dtype than f32 and bf16.
  WeightDecoder(const formats::GgufFile& file, MatrixForm form, Progress progress = {});
  // Raises FormatError when the file has no such tensor.
  Tensor decode(const std::string& name);

 private:
  Tensor decode_elements(const formats::GgufTensor& tensor) const;

  const formats::GgufFile& file_;
  MatrixForm form_;
  Progress progress_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

// Every tensor of the file by its name.
Weights decode_weights(const formats::GgufFile& file, const MatrixForm& form,
                       const Progress& progress = {});

}  // namespace tenon::pipelines
