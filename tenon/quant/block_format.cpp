#include "tenon/quant/block_format.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <string>

#include "tenon/quant/rows.h"

namespace tenon::quant {
namespace {

constexpr BlockFormat kFormats[] = {
#define BLOCK_FORMAT(name, gguf_type, elements, bytes, suffix) \
  {Encoding::k##name, #name, gguf_type, elements, bytes, decode_##suffix, encode_##suffix},
#include "tenon/quant/block_formats.def"
#undef BLOCK_FORMAT
};

bool equal_in_any_case(std::string_view a, std::string_view b) {
  auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return upper(x) == upper(y); });
}

template <class Formats>
const BlockFormat* find_in(const Formats& formats, std::string_view name) {
  auto it = std::find_if(std::begin(formats), std::end(formats),
                         [&](const BlockFormat& f) { return equal_in_any_case(f.name, name); });
  return it == std::end(formats) ? nullptr : &*it;
}

// Deques: what they hold keeps its place.
struct Registered {
  std::mutex mutex;
  std::deque<BlockFormat> formats;
  std::deque<std::string> names;
};

Registered& registered() {
  static Registered all;
  return all;
}

void check_sizes(const char* what, const BlockFormat& format, size_t elements, size_t bytes) {
  int64_t expected = format.bytes_of(static_cast<int64_t>(elements));
  if (static_cast<size_t>(expected) != bytes) {
    throw ValueError(fmt::format("{}: {} elements of {} take {} bytes, got {}", what, elements,
                                 format.name, expected, bytes),
                     {.label = "encoding_bytes"});
  }
}

}  // namespace

int64_t BlockFormat::bytes_of(int64_t elements) const {
  if (elements < 0 || elements % block_elements != 0) {
    throw ShapeError(
        fmt::format("{}: {} elements are not whole blocks of {}", name, elements, block_elements),
        {.label = "encoding_block"});
  }
  int64_t bytes;
  if (__builtin_mul_overflow(elements / block_elements, block_bytes, &bytes)) {
    throw ValueError(
        fmt::format("{}: the size of {} elements does not fit in 63 bits", name, elements),
        {.label = "encoding_size"});
  }
  return bytes;
}

const BlockFormat& register_format(const BlockFormat& format) {
  auto refuse = [&](const char* why) {
    throw ValueError(fmt::format("register_format: {} {}", format.name, why),
                     {.label = "encoding_register"});
  };
  if (format.name.empty()) refuse("(empty) is no name");
  if (format.block_elements < 1 || format.block_bytes < 1) refuse("has blocks without a size");
  if (format.decode_blocks == nullptr || format.encode_blocks == nullptr) {
    refuse("lacks one of its two functions");
  }
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  if (find_in(kFormats, format.name) != nullptr || find_in(all.formats, format.name) != nullptr) {
    refuse("is known already");
  }
  BlockFormat& kept = all.formats.emplace_back(format);
  kept.encoding = Encoding::kRegistered;
  kept.name = all.names.emplace_back(format.name);
  return kept;
}

std::span<const BlockFormat> block_formats() { return kFormats; }

const BlockFormat& block_format(Encoding encoding) {
  check_internal(encoding != Encoding::kRegistered, "a built-in encoding");
  return kFormats[static_cast<size_t>(encoding)];
}

const BlockFormat* find_block_format(std::string_view name) {
  if (const BlockFormat* format = find_in(kFormats, name)) return format;
  Registered& all = registered();
  const std::lock_guard lock(all.mutex);
  return find_in(all.formats, name);
}

const BlockFormat* find_gguf_type(uint32_t id) {
  auto it = std::find_if(std::begin(kFormats), std::end(kFormats),
                         [&](const BlockFormat& f) { return f.gguf_type == id; });
  return it == std::end(kFormats) ? nullptr : it;
}

void decode(const BlockFormat& format, std::span<const std::byte> in, std::span<float> out) {
  check_sizes("decode", format, out.size(), in.size());
  format.decode_blocks(in.data(), out.data(),
                       static_cast<int64_t>(out.size()) / format.block_elements);
}

void encode(const BlockFormat& format, std::span<const float> in, std::span<std::byte> out,
            int64_t first) {
  check_sizes("encode", format, in.size(), out.size());
  if (format.is_quantized()) {
    auto bad = std::find_if(in.begin(), in.end(), [](float x) { return !std::isfinite(x); });
    if (bad != in.end()) {
      throw ValueError(fmt::format("encode: element {} is {}, which {} cannot hold",
                                   first + (bad - in.begin()), *bad, format.name),
                       {.label = "encode_finite"});
    }
  }
  format.encode_blocks(in.data(), out.data(),
                       static_cast<int64_t>(in.size()) / format.block_elements);
}

}  // namespace tenon::quant
