#include "tenon/pipelines/requantize.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tenon/base/error.h"
#include "tenon/formats/gguf_writer.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::pipelines {
namespace {

using formats::GgufTensor;
using quant::BlockFormat;
using quant::Encoding;

constexpr int64_t kPieceElements = int64_t{1} << 15;  // a multiple of every block size
constexpr float kLargestF16 = 65504.0f;

// llama.cpp's `general.file_type` of a file whose matrices are mostly of this format.
uint32_t file_type(Encoding encoding) {
  switch (encoding) {
    case Encoding::kF32: return 0;
    case Encoding::kF16: return 1;
    case Encoding::kQ4_0: return 2;
    case Encoding::kQ4_1: return 3;
    case Encoding::kQ8_0: return 7;
    case Encoding::kQ5_0: return 8;
    case Encoding::kQ5_1: return 9;
    case Encoding::kQ4_K: return 14;
    case Encoding::kQ5_K: return 16;
    case Encoding::kQ6_K: return 18;
    case Encoding::kBF16: return 32;
    case Encoding::kRegistered: break;
  }
  throw InternalError("requantize: a format without a file type");
}

void check_f16(std::span<const float> values) {
  for (float value : values) {
    if (std::isfinite(value) && std::fabs(value) > kLargestF16) {
      throw ValueError(
          fmt::format("encode: {} does not fit F16, whose largest value is 65504", value),
          {.label = "encode_range", .hint = "BF16 holds it"});
    }
  }
}

// Whole blocks of both formats, elements first … first + count.
void convert_piece(const GgufTensor& tensor, const BlockFormat& to, int64_t first, int64_t count,
                   std::span<std::byte> out) {
  auto bytes = [&](int64_t elements) { return static_cast<size_t>(to.bytes_of(elements)); };
  std::vector<float> values(static_cast<size_t>(count));
  tensor.decode_part(first, values);
  if (to.encoding == Encoding::kF16) check_f16(values);
  quant::encode(to, values, out.subspan(bytes(first), bytes(count)), first);
}

std::vector<std::byte> convert(const GgufTensor& tensor, const BlockFormat& to) {
  std::vector<std::byte> out(static_cast<size_t>(to.bytes_of(tensor.elements)));
  const int64_t pieces = (tensor.elements + kPieceElements - 1) / kPieceElements;
  try {
    runtime::parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * kPieceElements;
        convert_piece(tensor, to, first, std::min(kPieceElements, tensor.elements - first), out);
      }
    });
  } catch (const Error& error) {
    throw_error(error.kind(), fmt::format("tensor {}: {}", tensor.name, error.message()),
                error.parts());
  }
  return out;
}

void note(std::vector<RequantizedGroup>& groups, const RequantizedGroup& one) {
  for (RequantizedGroup& group : groups) {
    if (group.from == one.from && group.to == one.to && group.instead == one.instead) {
      ++group.tensors;
      return;
    }
  }
  groups.push_back(one);
  groups.back().tensors = 1;
}

}  // namespace

const BlockFormat& format_for_columns(const BlockFormat& wanted, int64_t columns) {
  if (columns % wanted.block_elements == 0) return wanted;
  auto in_place = [&] {
    switch (wanted.encoding) {
      case Encoding::kQ4_K: return Encoding::kQ5_0;
      case Encoding::kQ5_K: return Encoding::kQ5_1;
      case Encoding::kQ6_K: return Encoding::kQ8_0;
      default: return Encoding::kF16;
    }
  };
  const BlockFormat& other = quant::block_format(in_place());
  return columns % other.block_elements == 0 ? other : quant::block_format(Encoding::kF16);
}

RequantizeReport requantize(const formats::GgufFile& file, const std::string& path,
                            const RequantizeOptions& options) {
  formats::GgufWriter writer;
  for (const formats::GgufEntry& entry : file.metadata()) {
    if (entry.key == "general.file_type" || entry.key == "general.quantization_version") continue;
    writer.copy(entry);
  }
  writer.set_u32("general.file_type", file_type(options.format->encoding));
  writer.set_u32("general.quantization_version", 2);

  const bool tied = file.find_tensor("output.weight") == nullptr;
  const std::string head = tied ? "token_embd.weight" : "output.weight";
  uint64_t total = 0;
  uint64_t done = 0;
  for (const GgufTensor& tensor : file.tensors()) total += tensor.data.size();
  RequantizeReport report;
  std::vector<std::vector<std::byte>> kept;
  for (const GgufTensor& tensor : file.tensors()) {
    if (options.progress) options.progress(done, total);
    done += tensor.data.size();
    report.elements += static_cast<uint64_t>(tensor.elements);
    const bool is_head = tensor.name == head && options.output_format != nullptr;
    const BlockFormat& wanted = is_head ? *options.output_format : *options.format;
    const bool is_matrix = tensor.shape.size() >= 2;
    const BlockFormat& to =
        is_matrix ? format_for_columns(wanted, tensor.shape.back()) : *tensor.format;
    note(report.groups, {tensor.format, &to, is_matrix && &to != &wanted});
    std::span<const std::byte> data = tensor.data;
    if (&to != tensor.format) data = kept.emplace_back(convert(tensor, to));
    writer.add_tensor(tensor.name, to, tensor.shape, data);
  }
  if (options.progress) options.progress(total, total);
  writer.write(path);
  report.bytes = std::filesystem::file_size(path);
  return report;
}

}  // namespace tenon::pipelines
