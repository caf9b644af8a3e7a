// Typed access to the metadata of a GGUF file.
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/formats/gguf.h"

namespace tenon::formats {
namespace {

constexpr struct {
  const char* name;
  size_t size;
} kTypes[] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
              {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
              {"u64", 8}, {"i64", 8}, {"f64", 8}};

template <class T>
T load(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

// nullopt: not an integer type, or one that does not fit.
std::optional<int64_t> integer(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kU8: return load<uint8_t>(at);
    case GgufType::kI8: return load<int8_t>(at);
    case GgufType::kU16: return load<uint16_t>(at);
    case GgufType::kI16: return load<int16_t>(at);
    case GgufType::kU32: return load<uint32_t>(at);
    case GgufType::kI32: return load<int32_t>(at);
    case GgufType::kI64: return load<int64_t>(at);
    case GgufType::kU64: {
      auto value = load<uint64_t>(at);
      return value <= INT64_MAX ? std::optional<int64_t>(static_cast<int64_t>(value))
                                : std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<double> floating(GgufType type, const std::byte* at) {
  if (type == GgufType::kF32) return static_cast<double>(load<float>(at));
  if (type == GgufType::kF64) return load<double>(at);
  return std::nullopt;
}

std::string_view text(const GgufValue& value) {
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

// All elements of an array of numbers by `read`; nullopt when one is of another kind.
template <class T>
std::optional<std::vector<T>> elements(const GgufValue& value,
                                       std::optional<T> (*read)(GgufType, const std::byte*)) {
  if (value.type != GgufType::kArray || value.element == GgufType::kString) return std::nullopt;
  std::vector<T> out;
  out.reserve(value.count);
  const size_t size = gguf_type_size(value.element);
  for (uint64_t i = 0; i < value.count; ++i) {
    std::optional<T> element = read(value.element, value.bytes.data() + i * size);
    if (!element) return std::nullopt;
    out.push_back(*element);
  }
  return out;
}

}  // namespace

std::string gguf_type_name(GgufType type) {
  auto i = static_cast<uint32_t>(type);
  return i < std::size(kTypes) ? kTypes[i].name : fmt::format("type {}", i);
}

size_t gguf_type_size(GgufType type) {
  auto i = static_cast<uint32_t>(type);
  return i < std::size(kTypes) ? kTypes[i].size : 0;
}

std::string GgufValue::type_text() const {
  if (type != GgufType::kArray) return gguf_type_name(type);
  return fmt::format("array of {} {}", count, gguf_type_name(element));
}

const GgufValue* GgufFile::find(std::string_view key) const {
  auto it = keys_.find(key);
  return it == keys_.end() ? nullptr : &metadata_[it->second].value;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  auto it = tensor_names_.find(name);
  return it == tensor_names_.end() ? nullptr : &tensors_[it->second];
}

void GgufFile::refuse_type(std::string_view key, const GgufValue& value, const char* wanted) const {
  throw FormatError(
      fmt::format("{}: key {} is {}, expected {}", name_, key, value.type_text(), wanted));
}

void GgufFile::refuse_absent(std::string_view key) const {
  throw FormatError(fmt::format("{}: key {} is missing", name_, key));
}

std::optional<int64_t> GgufFile::get_int(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<int64_t> out = integer(value->type, value->bytes.data());
  if (!out) refuse_type(key, *value, "an integer of at most 63 bits");
  return out;
}

std::optional<double> GgufFile::get_float(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> out = floating(value->type, value->bytes.data());
  if (!out) refuse_type(key, *value, "a float");
  return out;
}

std::optional<bool> GgufFile::get_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) refuse_type(key, *value, "a bool");
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufFile::get_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) refuse_type(key, *value, "a string");
  return text(*value);
}

std::optional<std::vector<std::string_view>> GgufFile::get_strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kArray || value->element != GgufType::kString) {
    refuse_type(key, *value, "an array of strings");
  }
  return value->strings;
}

std::optional<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  auto out = elements<int64_t>(*value, integer);
  if (!out) refuse_type(key, *value, "an array of integers of at most 63 bits");
  return out;
}

std::optional<std::vector<double>> GgufFile::get_floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  auto out = elements<double>(*value, floating);
  if (!out) refuse_type(key, *value, "an array of floats");
  return out;
}

int64_t GgufFile::require_int(std::string_view key) const {
  if (auto out = get_int(key)) return *out;
  refuse_absent(key);
}

double GgufFile::require_float(std::string_view key) const {
  if (auto out = get_float(key)) return *out;
  refuse_absent(key);
}

std::string_view GgufFile::require_string(std::string_view key) const {
  if (auto out = get_string(key)) return *out;
  refuse_absent(key);
}

std::vector<std::string_view> GgufFile::require_strings(std::string_view key) const {
  if (auto out = get_strings(key)) return std::move(*out);
  refuse_absent(key);
}

const GgufTensor& GgufFile::require_tensor(std::string_view name) const {
  if (const GgufTensor* tensor = find_tensor(name)) return *tensor;
  throw FormatError(fmt::format("{}: tensor {} is missing", name_, name));
}

}  // namespace tenon::formats
