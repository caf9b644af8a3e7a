#include "tenon/pipelines/llama/packed_file.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/base/hash.h"
#include "tenon/base/mmap.h"

namespace tenon::pipelines {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'N', 'P', 'A', 'C', 'K', '0', '1'};
constexpr size_t kAlign = 64;
constexpr size_t kMostDims = 8;

struct Header {
  std::array<char, 8> magic;
  uint64_t entries;
  Digest digest;  // of the table
};

struct Entry {
  std::array<char, 64> key;  // of the setup result
  uint64_t in_model;         // 1: `offset` counts in the model's tensor data, from the first tensor
  uint64_t offset;           // else from the file's beginning
  uint64_t dtype;
  uint64_t rank;
  std::array<int64_t, kMostDims> dims;
};

const std::byte* model_data(const formats::GgufFile& file) { return file.tensors()[0].data.data(); }

// The offset of `array` in the model's tensors when it lies there.
std::optional<uint64_t> offset_in_model(const formats::GgufFile& file,
                                        const runtime::Array& array) {
  const auto* at = static_cast<const std::byte*>(array.data());
  for (const formats::GgufTensor& tensor : file.tensors()) {
    if (at == tensor.data.data() && array.bytes() == tensor.data.size()) {
      return static_cast<uint64_t>(at - model_data(file));
    }
  }
  return std::nullopt;
}

// The result that `entry` describes; invalid when its bytes are not there.
runtime::Array array_of(const Entry& entry, const std::shared_ptr<const MappedFile>& packed,
                        const formats::GgufFile& file) {
  if (entry.rank > kMostDims || entry.dtype >= static_cast<uint64_t>(kDTypeCount)) return {};
  const std::vector<int64_t> dims(entry.dims.begin(),
                                  entry.dims.begin() + static_cast<ptrdiff_t>(entry.rank));
  const auto dtype = static_cast<DType>(entry.dtype);
  const uint64_t bytes = static_cast<uint64_t>(element_count(dims)) * size_of(dtype);
  if (entry.in_model == 1) {
    for (const formats::GgufTensor& tensor : file.tensors()) {
      const bool here = tensor.data.data() == model_data(file) + entry.offset;
      if (!here || tensor.data.size() != bytes) continue;
      return runtime::Array::borrow(dtype, dims, const_cast<std::byte*>(tensor.data.data()),
                                    file.hold(tensor), false);
    }
    return {};
  }
  const std::span<const std::byte> all = packed->bytes();
  if (entry.offset > all.size() || bytes > all.size() - entry.offset) return {};
  return runtime::Array::borrow(dtype, dims, const_cast<std::byte*>(all.data() + entry.offset),
                                packed, false);
}

Digest digest_of(std::span<const Entry> entries) {
  return Hasher().update(std::as_bytes(entries)).finish();
}

}  // namespace

std::string packed_path(const std::string& programs, const formats::GgufFile& file) {
  if (file.identity().empty() || file.tensors().empty()) return "";
  const Digest digest = Hasher().update(programs).update("\n").update(file.identity()).finish();
  return std::filesystem::path(programs).parent_path() / ("packed-" + to_hex(digest) + ".bin");
}

runtime::SetupResults read_packed(const std::string& path, const formats::GgufFile& file) {
  if (path.empty() || ::access(path.c_str(), R_OK) != 0) return {};
  try {
    const auto packed = MappedFile::open(path);
    const std::span<const std::byte> all = packed->bytes();
    Header header;
    if (all.size() < sizeof header) return {};
    std::memcpy(&header, all.data(), sizeof header);
    if (header.magic != kMagic || header.entries > (all.size() - sizeof header) / sizeof(Entry)) {
      return {};
    }
    std::vector<Entry> entries(header.entries);
    std::memcpy(entries.data(), all.data() + sizeof header, entries.size() * sizeof(Entry));
    if (header.digest != digest_of(entries)) return {};
    runtime::SetupResults results;
    for (const Entry& entry : entries) {
      runtime::Array array = array_of(entry, packed, file);
      if (!array.valid()) return {};
      results.emplace(std::string(entry.key.begin(), entry.key.end()), std::move(array));
    }
    return results;
  } catch (const Error&) {
    return {};
  }
}

void write_packed(const std::string& path, const formats::GgufFile& file,
                  const runtime::SetupResults& results) {
  std::vector<Entry> entries;
  std::vector<std::span<const std::byte>> data;
  static constexpr std::array<std::byte, kAlign> kPadding = {};
  uint64_t at = sizeof(Header) + results.size() * sizeof(Entry);
  const auto pad = [&] {
    const uint64_t rest = (kAlign - at % kAlign) % kAlign;
    data.emplace_back(kPadding.data(), rest);
    at += rest;
  };
  for (const auto& [key, array] : results) {
    Entry entry{};
    if (key.size() != entry.key.size() || array.rank() > kMostDims) return;
    std::copy(key.begin(), key.end(), entry.key.begin());
    entry.dtype = static_cast<uint64_t>(array.dtype());
    entry.rank = array.rank();
    std::copy(array.dims().begin(), array.dims().end(), entry.dims.begin());
    const std::optional<uint64_t> in_model = offset_in_model(file, array);
    entry.in_model = in_model ? 1 : 0;
    if (!in_model) pad();
    entry.offset = in_model.value_or(at);
    if (!in_model) {
      data.emplace_back(array.as<std::byte>(), array.bytes());
      at += array.bytes();
    }
    entries.push_back(entry);
  }
  const Header header = {kMagic, entries.size(), digest_of(entries)};
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(&header, 1)),
                                                    std::as_bytes(std::span(entries))};
  pieces.insert(pieces.end(), data.begin(), data.end());
  try {
    write_pieces_atomic(path, pieces);
  } catch (const IoError&) {
  }
}

}  // namespace tenon::pipelines
