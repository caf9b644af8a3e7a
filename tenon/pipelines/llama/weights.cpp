#include "tenon/pipelines/llama/weights.h"

#include <algorithm>
#include <vector>

#include "tenon/base/half.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::pipelines {
namespace {

// One piece of work: whole blocks of one tensor.
struct Piece {
  const formats::GgufTensor* tensor;
  int64_t first;  // element
  int64_t count;
  void* out;  // of the tensor's first element
  DType dtype;
};

constexpr int64_t kPieceElements = int64_t{1} << 15;  // a multiple of every block size

void decode_piece(const Piece& piece, std::vector<float>& staging) {
  const auto count = static_cast<size_t>(piece.count);
  if (piece.dtype == DType::kF32) {
    piece.tensor->decode_part(piece.first, {static_cast<float*>(piece.out) + piece.first, count});
    return;
  }
  staging.resize(count);
  piece.tensor->decode_part(piece.first, staging);
  auto* out = static_cast<uint16_t*>(piece.out) + piece.first;
  for (size_t i = 0; i < count; ++i) out[i] = bf16_from_float(staging[i]);
}

}  // namespace

MatrixForm MatrixForm::of_file(const formats::GgufFile& file, Activations activations) {
  MatrixForm form(DType::kF32);
  form.activations = activations;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    if (tensor.shape.size() == 2) form.encodings[tensor.name] = tensor.format->name;
  }
  return form;
}

const std::string* MatrixForm::encoding(const std::string& name) const {
  auto it = encodings.find(name);
  return it == encodings.end() ? nullptr : &it->second;
}

WeightDecoder::WeightDecoder(const formats::GgufFile& file, MatrixForm form, Progress progress)
    : file_(file), form_(std::move(form)), progress_(std::move(progress)) {
  if (form_.dtype != DType::kF32 && form_.dtype != DType::kBF16) {
    throw ValueError(
        fmt::format("decode_weights: weights can be f32 or bf16, not {}", name(form_.dtype)));
  }
  for (const formats::GgufTensor& tensor : file.tensors()) total_ += tensor.data.size();
  if (progress_) progress_(0, total_);
}

Tensor WeightDecoder::decode(const std::string& name) {
  const formats::GgufTensor& tensor = file_.require_tensor(name);
  done_ += tensor.data.size();
  if (progress_) progress_(std::min(done_, total_), total_);
  if (form_.encoding(name) == nullptr) return decode_elements(tensor);
  const int64_t rows = tensor.shape[0];
  const int64_t row_bytes = tensor.format->bytes_of(tensor.shape[1]);
  return Tensor(runtime::Array::borrow(DType::kU8, {rows, row_bytes},
                                       const_cast<std::byte*>(tensor.data.data()),
                                       file_.hold(tensor), /*writable=*/false));
}

Tensor WeightDecoder::decode_elements(const formats::GgufTensor& tensor) const {
  const DType type = tensor.shape.size() < 2 ? DType::kF32 : form_.dtype;
  runtime::Array array = runtime::Array::empty(type, tensor.shape);
  void* out = array.mutable_data();
  const int64_t pieces = (tensor.elements + kPieceElements - 1) / kPieceElements;
  runtime::parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<float> staging;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * kPieceElements;
      decode_piece({&tensor, at, std::min(kPieceElements, tensor.elements - at), out, type},
                   staging);
    }
  });
  file_.release(tensor);
  return Tensor(std::move(array));
}

Weights decode_weights(const formats::GgufFile& file, const MatrixForm& form,
                       const Progress& progress) {
  WeightDecoder decoder(file, form, progress);
  Weights weights;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    weights.emplace(tensor.name, decoder.decode(tensor.name));
  }
  return weights;
}

}  // namespace tenon::pipelines
