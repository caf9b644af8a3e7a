// Writes GGUF files, version 3.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tenon/formats/gguf.h"

namespace tenon::formats {

class GgufWriter {
 public:
  // Metadata in the order of the calls. Raise ValueError for a key that the reader would refuse or
  // that was set before. general.alignment is set by set_alignment alone.
  void set_u32(const std::string& key, uint32_t value);
  void set_u64(const std::string& key, uint64_t value);
  void set_i32(const std::string& key, int32_t value);
  void set_f32(const std::string& key, float value);
  void set_bool(const std::string& key, bool value);
  void set_string(const std::string& key, std::string_view value);
  void set_strings(const std::string& key, const std::vector<std::string>& values);
  void set_i32s(const std::string& key, const std::vector<int32_t>& values);
  void set_f32s(const std::string& key, const std::vector<float>& values);
  // As another file has it.
  void copy(const GgufEntry& entry);
  // Of the tensors' data; 32 when not set. Raises ValueError for what the reader would refuse.
  void set_alignment(uint32_t alignment);

  // `shape` is outermost first. The bytes are not copied and must live until write(). Raises
  // ValueError for a name or shape that the reader would refuse or a size that is not the shape's.
  void add_tensor(const std::string& name, const quant::BlockFormat& format,
                  std::vector<int64_t> shape, std::span<const std::byte> data);

  // The file's bytes.
  std::vector<std::byte> bytes() const;
  // Writes atomically (write_pieces_atomic). Raises IoError.
  void write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    const quant::BlockFormat* format;
    std::vector<int64_t> shape;
    std::span<const std::byte> data;
  };
  std::string& begin_entry(const std::string& key, GgufType type);
  std::string head() const;
  std::vector<std::span<const std::byte>> pieces(const std::string& head) const;

  uint32_t alignment_ = 32;
  std::vector<std::pair<std::string, std::string>> entries_;  // key, encoded type and value
  std::vector<Tensor> tensors_;
};

}  // namespace tenon::formats
