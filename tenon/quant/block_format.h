// Block formats of weights: a row of elements is a sequence of blocks of fixed size in elements and
// bytes, packed without padding; a block never straddles rows. Built-in layouts are those of GGUF
// files.
//
// Decoding is exact: each element is the value that the format defines, with every float operation
// rounded once. Encoding gives the bytes of the format's reference quantiser without an importance
// matrix (built without contraction of multiply and add).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::quant {

enum class Encoding : uint8_t {
#define BLOCK_FORMAT(name, gguf_type, elements, bytes, suffix) k##name,
#include "tenon/quant/block_formats.def"
#undef BLOCK_FORMAT
  kRegistered,  // a format of the user's: told apart by name
};

struct BlockFormat {
  Encoding encoding;
  std::string_view name;  // "Q4_K"
  uint32_t gguf_type;     // the id of the type in a GGUF file
  int64_t block_elements;
  int64_t block_bytes;
  // Whole blocks, without checks; the buffers need no alignment beyond float's.
  void (*decode_blocks)(const std::byte* in, float* out, int64_t blocks);
  // Raises ValueError for a block whose scale does not fit the format. Elements are finite, except
  // for F32, F16 and BF16, which take any.
  void (*encode_blocks)(const float* in, std::byte* out, int64_t blocks);

  bool is_quantized() const { return block_elements > 1; }
  // Bytes of `elements` elements. Raises ShapeError naming both numbers when blocks do not divide
  // them, ValueError when the size does not fit in 63 bits.
  int64_t bytes_of(int64_t elements) const;
};

// Adds a format for this process under a name of its own: its functions, with blocks of
// `block_elements` elements in `block_bytes` bytes, may be called from several threads. Encoding
// and GGUF id are not used. Returns the format as it is kept. Raises ValueError [encoding_register]
// for an empty name, one that is taken, sizes below 1 or a missing function.
const BlockFormat& register_format(const BlockFormat& format);

// The built-in formats, in the order of the table.
std::span<const BlockFormat> block_formats();
// Raises InternalError for kRegistered.
const BlockFormat& block_format(Encoding encoding);
// By name, in any case; null if neither built in nor registered.
const BlockFormat* find_block_format(std::string_view name);
// By the id in a GGUF file; null if unknown or not supported.
const BlockFormat* find_gguf_type(uint32_t id);

// Decodes whole blocks. Raises ValueError when `in` is not bytes_of(out.size()) long.
void decode(const BlockFormat& format, std::span<const std::byte> in, std::span<float> out);
// Encodes whole blocks. Raises ValueError when `out` is not bytes_of(in.size()) long, or for a
// block format at the first element that is NaN or infinite, naming its index when `first` is that
// of in[0].
void encode(const BlockFormat& format, std::span<const float> in, std::span<std::byte> out,
            int64_t first = 0);

}  // namespace tenon::quant
