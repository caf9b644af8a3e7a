#include "tenon/pipelines/llama/weights.h"

#include <algorithm>
#include <mutex>
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

constexpr int64_t kPieceElements = int64_t{1} << 18;  // a multiple of every block size

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

Weights decode_weights(const formats::GgufFile& file, DType dtype, const Progress& progress) {
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    throw ValueError(
        fmt::format("decode_weights: weights can be f32 or bf16, not {}", name(dtype)));
  }
  Weights weights;
  std::vector<Piece> pieces;
  uint64_t total = 0;
  for (const formats::GgufTensor& tensor : file.tensors()) {
    const DType type = tensor.shape.size() < 2 ? DType::kF32 : dtype;
    runtime::Array array = runtime::Array::empty(type, tensor.shape);
    for (int64_t at = 0; at < tensor.elements; at += kPieceElements) {
      const int64_t count = std::min(kPieceElements, tensor.elements - at);
      pieces.push_back({&tensor, at, count, array.mutable_data(), type});
    }
    total += tensor.data.size();
    weights.emplace(tensor.name, Tensor(std::move(array)));
  }
  std::mutex mutex;
  uint64_t done = 0;
  runtime::parallel_for(
      static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
        std::vector<float> staging;
        for (int64_t i = begin; i < end; ++i) {
          const Piece& piece = pieces[static_cast<size_t>(i)];
          decode_piece(piece, staging);
          if (!progress) continue;
          std::lock_guard<std::mutex> lock(mutex);
          done += static_cast<uint64_t>(piece.tensor->format->bytes_of(piece.count));
          progress(done, total);
        }
      });
  return weights;
}

}  // namespace tenon::pipelines
