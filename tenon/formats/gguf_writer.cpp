#include "tenon/formats/gguf_writer.h"

#include <algorithm>
#include <array>
#include <bit>

#include "tenon/base/error.h"
#include "tenon/base/literal.h"
#include "tenon/base/mmap.h"
#include "tenon/base/utf8.h"

namespace tenon::formats {
namespace {

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void put_array_head(std::string& out, GgufType element, size_t count) {
  put(out, element);
  put(out, static_cast<uint64_t>(count));
}

template <class T>
void put_numbers(std::string& out, GgufType element, const std::vector<T>& values) {
  put_array_head(out, element, values.size());
  for (const T& value : values) put(out, value);
}

void check_name(const char* what, std::string_view name, size_t longest) {
  if (name.empty() || name.size() > longest || name.find('\0') != name.npos || !is_utf8(name)) {
    throw ValueError(fmt::format("gguf: {} \"{}\" is not UTF-8 of 1 to {} bytes without NUL", what,
                                 replace_invalid_utf8(name), longest),
                     {.label = "gguf_name"});
  }
}

constexpr uint32_t kMaxAlignment = 1 << 20;

size_t padding(size_t size, size_t alignment) { return (alignment - size % alignment) % alignment; }

std::span<const std::byte> zeros(size_t size) {
  static constexpr std::array<std::byte, kMaxAlignment> kZeros{};
  return std::span(kZeros).first(size);
}

}  // namespace

std::string& GgufWriter::begin_entry(const std::string& key, GgufType type) {
  check_name("key", key, 65535);
  for (const auto& [other, value] : entries_) {
    if (other == key) throw ValueError("gguf: key " + key + " is set twice", {.label = "gguf_key"});
  }
  entries_.emplace_back(key, "");
  put(entries_.back().second, type);
  return entries_.back().second;
}

void GgufWriter::set_u32(const std::string& key, uint32_t value) {
  if (key == "general.alignment") return set_alignment(value);
  put(begin_entry(key, GgufType::kU32), value);
}

void GgufWriter::set_u64(const std::string& key, uint64_t value) {
  put(begin_entry(key, GgufType::kU64), value);
}

void GgufWriter::set_i32(const std::string& key, int32_t value) {
  put(begin_entry(key, GgufType::kI32), value);
}

void GgufWriter::set_f32(const std::string& key, float value) {
  put(begin_entry(key, GgufType::kF32), value);
}

void GgufWriter::set_bool(const std::string& key, bool value) {
  put(begin_entry(key, GgufType::kBool), static_cast<uint8_t>(value));
}

void GgufWriter::set_string(const std::string& key, std::string_view value) {
  put_text(begin_entry(key, GgufType::kString), value);
}

void GgufWriter::set_strings(const std::string& key, const std::vector<std::string>& values) {
  std::string& out = begin_entry(key, GgufType::kArray);
  put_array_head(out, GgufType::kString, values.size());
  for (const std::string& value : values) put_text(out, value);
}

void GgufWriter::set_i32s(const std::string& key, const std::vector<int32_t>& values) {
  put_numbers(begin_entry(key, GgufType::kArray), GgufType::kI32, values);
}

void GgufWriter::set_f32s(const std::string& key, const std::vector<float>& values) {
  put_numbers(begin_entry(key, GgufType::kArray), GgufType::kF32, values);
}

void GgufWriter::copy(const GgufEntry& entry) {
  const GgufValue& value = entry.value;
  std::string_view bytes(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  if (entry.key == "general.alignment") {
    uint32_t alignment;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&alignment));
    return set_alignment(alignment);
  }
  std::string& out = begin_entry(entry.key, value.type);
  if (value.type == GgufType::kArray) put_array_head(out, value.element, value.count);
  for (std::string_view string : value.strings) put_text(out, string);
  if (value.type == GgufType::kString) return put_text(out, bytes);
  out += bytes;
}

void GgufWriter::set_alignment(uint32_t alignment) {
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kMaxAlignment) {
    throw ValueError(fmt::format("gguf: alignment {} is not a power of two from 8 to {}", alignment,
                                 kMaxAlignment),
                     {.label = "gguf_alignment"});
  }
  std::erase_if(entries_, [](const auto& entry) { return entry.first == "general.alignment"; });
  put(begin_entry("general.alignment", GgufType::kU32), alignment);
  alignment_ = alignment;
}

void GgufWriter::add_tensor(const std::string& name, const quant::BlockFormat& format,
                            std::vector<int64_t> shape, std::span<const std::byte> data) {
  check_name("tensor name", name, 64);
  for (const Tensor& other : tensors_) {
    if (other.name == name) {
      throw ValueError("gguf: tensor " + name + " is added twice", {.label = "gguf_tensor"});
    }
  }
  int64_t elements = element_count(shape);
  if (shape.empty() || shape.size() > 4 || elements == 0) {
    throw ValueError(
        fmt::format("gguf: tensor {}: shape [{}] has not 1 to 4 dimensions of 1 or more", name,
                    fmt::join(shape, ", ")),
        {.label = "gguf_shape"});
  }
  format.bytes_of(shape.back());  // whole blocks along the columns
  if (static_cast<uint64_t>(format.bytes_of(elements)) != data.size()) {
    throw ValueError(fmt::format("gguf: tensor {}: {} elements of {} take {} bytes, got {}", name,
                                 elements, format.name, format.bytes_of(elements), data.size()),
                     {.label = "gguf_bytes"});
  }
  tensors_.push_back({name, &format, std::move(shape), data});
}

std::string GgufWriter::head() const {
  std::string out = "GGUF";
  put(out, uint32_t{3});
  put(out, static_cast<uint64_t>(tensors_.size()));
  put(out, static_cast<uint64_t>(entries_.size()));
  for (const auto& [key, value] : entries_) {
    put_text(out, key);
    out += value;
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_text(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) put(out, tensor.shape[i]);
    put(out, tensor.format->gguf_type);
    put(out, offset);
    offset += tensor.data.size() + padding(tensor.data.size(), alignment_);
  }
  out.append(padding(out.size(), alignment_), '\0');
  return out;
}

std::vector<std::span<const std::byte>> GgufWriter::pieces(const std::string& head) const {
  std::vector<std::span<const std::byte>> out = {
      std::as_bytes(std::span(head.data(), head.size()))};
  for (const Tensor& tensor : tensors_) {
    out.push_back(tensor.data);
    out.push_back(zeros(padding(tensor.data.size(), alignment_)));
  }
  return out;
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::vector<std::byte> out;
  std::string first = head();
  for (auto piece : pieces(first)) out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

void GgufWriter::write(const std::string& path) const {
  std::string first = head();
  write_pieces_atomic(path, pieces(first));
}

}  // namespace tenon::formats
