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
  const quant::BlockFormat& format = *piece.tensor->format;
  const auto offset = static_cast<size_t>(format.bytes_of(piece.first));
  const auto size = static_cast<size_t>(format.bytes_of(piece.count));
  std::span<const std::byte> in = piece.tensor->data.subspan(offset, size);
  const auto count = static_cast<size_t>(piece.count);
  if (piece.dtype == DType::kF32) {
    quant::decode(format, in, {static_cast<float*>(piece.out) + piece.first, count});
    return;
  }
  staging.resize(count);
  quant::decode(format, in, staging);
  auto* out = static_cast<uint16_t*>(piece.out) + piece.first;
  for (size_t i = 0; i < count; ++i) out[i] = bf16_from_float(staging[i]);
}

}  // namespace

WeightDecoder::WeightDecoder(const formats::GgufFile& file, DType dtype, Progress progress)
    : file_(file), dtype_(dtype), progress_(std::move(progress)) {
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    throw ValueError(
        fmt::format("decode_weights: weights can be f32 or bf16, not {}", name(dtype)));
  }
  for (const formats::GgufTensor& tensor : file.tensors()) total_ += tensor.data.size();
  if (progress_) progress_(0, total_);
}

Tensor WeightDecoder::decode(const std::string& name) {
  const formats::GgufTensor& tensor = file_.require_tensor(name);
  const DType type = tensor.shape.size() < 2 ? DType::kF32 : dtype_;
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
  done_ += tensor.data.size();
  if (progress_) progress_(std::min(done_, total_), total_);
  return Tensor(std::move(array));
}

Weights decode_weights(const formats::GgufFile& file, DType dtype, const Progress& progress) {
  WeightDecoder decoder(file, dtype, progress);
  Weights weights;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    weights.emplace(tensor.name, decoder.decode(tensor.name));
  }
  return weights;
}

}  // namespace tenon::pipelines
