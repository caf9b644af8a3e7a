// GGUF files, versions 2 and 3, little-endian: typed metadata and tensors as spans of the mapped
// file.
//
// Everything is checked before a file is handed out: counts and lengths against the bytes that are
// left, sums and products for overflow, names, alignment, types, and that each tensor's bytes lie
// in the file without overlapping another's. What is not right is refused with a FormatError that
// names the file and the reason; no file makes the reader allocate more than a small multiple of
// its size. A file must not shrink while it is mapped.
//
// Limits beyond the format's: keys of 1 to 65,535 and tensor names of 1 to 64 bytes, both UTF-8
// without NUL; 1 to 4 dimensions, none of them 0; general.alignment a power of two from 8 to 2^20;
// no arrays of arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/quant/block_format.h"

namespace tenon::formats {

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// "u8", …, "bool", "string", "array", …; "type 13" for others.
std::string gguf_type_name(GgufType type);
// Bytes of one value; 0 for strings and arrays.
size_t gguf_type_size(GgufType type);

// One value. Views point into the file.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;       // of an array
  uint64_t count = 0;                     // elements of an array
  std::span<const std::byte> bytes = {};  // a number, the text of a string, an array's numbers
  std::vector<std::string_view> strings;  // an array of strings

  // "u32", "string", "array of 30 f32".
  std::string type_text() const;
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  const quant::BlockFormat* format = nullptr;
  // Outermost first: a matrix is [rows, columns], with whole blocks along the columns.
  std::vector<int64_t> shape;
  int64_t elements = 0;
  std::span<const std::byte> data;

  // All elements in float. Raises ValueError when `out` has another size.
  void decode(std::span<float> out) const { quant::decode(*format, data, out); }
  // Elements `first` … first + out.size(): whole blocks, all inside.
  void decode_part(int64_t first, std::span<float> out) const {
    const auto begin = static_cast<size_t>(format->bytes_of(first));
    const auto size = static_cast<size_t>(format->bytes_of(static_cast<int64_t>(out.size())));
    quant::decode(*format, data.subspan(begin, size), out);
  }
};

class GgufFile {
 public:
  // Maps a file. Raises IoError, FormatError.
  static std::shared_ptr<const GgufFile> open(const std::string& path);
  // Reads bytes that `owner` keeps alive; `name` stands in errors. Raises FormatError.
  static std::shared_ptr<const GgufFile> parse(std::span<const std::byte> bytes, std::string name,
                                               std::shared_ptr<const void> owner = nullptr);

  const std::string& name() const { return name_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint64_t size() const { return bytes_.size(); }
  // MappedFile's; empty for bytes that were given.
  const std::string& identity() const { return identity_; }
  // Keeps the file's bytes in place, and releases the tensor's when it goes.
  std::shared_ptr<const void> hold(const GgufTensor& tensor) const;
  // Lets the system take back the memory of this tensor in a mapped file and of what stands close
  // to it; they are read again when they are next used.
  void release(const GgufTensor& tensor) const;

  // In the order of the file.
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufValue* find(std::string_view key) const;           // null: absent
  const GgufTensor* find_tensor(std::string_view name) const;  // null: absent

  // Typed metadata. `get_` gives nullopt for an absent key, `require_` raises FormatError; both
  // raise FormatError naming the key and its type when the value is of another kind. Integers may
  // have any integer type and must fit i64; floats are f32 or f64.
  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> get_ints(std::string_view key) const;
  std::optional<std::vector<double>> get_floats(std::string_view key) const;
  int64_t require_int(std::string_view key) const;
  double require_float(std::string_view key) const;
  std::string_view require_string(std::string_view key) const;
  std::vector<std::string_view> require_strings(std::string_view key) const;
  // Raises FormatError for an absent tensor.
  const GgufTensor& require_tensor(std::string_view name) const;

 private:
  friend class GgufParser;
  GgufFile() = default;
  [[noreturn]] void refuse_type(std::string_view key, const GgufValue& value,
                                const char* wanted) const;
  [[noreturn]] void refuse_absent(std::string_view key) const;

  std::string name_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::string identity_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<GgufEntry> metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t> keys_;
  std::unordered_map<std::string_view, size_t> tensor_names_;
};

}  // namespace tenon::formats
