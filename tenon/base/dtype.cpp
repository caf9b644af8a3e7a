#include "tenon/base/dtype.h"

#include <algorithm>
#include <array>

namespace tenon {
namespace {

enum class Class : uint8_t { kBool, kUnsigned, kSigned, kFloat, kComplex };

struct Row {
  std::string_view name;
  std::string_view numpy;
  uint8_t bytes;
  Class cls;
};

constexpr std::array<Row, kDTypeCount> kRows = {{
    {"bool", "bool_", 1, Class::kBool},
    {"i8", "int8", 1, Class::kSigned},
    {"i16", "int16", 2, Class::kSigned},
    {"i32", "int32", 4, Class::kSigned},
    {"i64", "int64", 8, Class::kSigned},
    {"u8", "uint8", 1, Class::kUnsigned},
    {"u16", "uint16", 2, Class::kUnsigned},
    {"u32", "uint32", 4, Class::kUnsigned},
    {"u64", "uint64", 8, Class::kUnsigned},
    {"f16", "float16", 2, Class::kFloat},
    {"bf16", "bfloat16", 2, Class::kFloat},
    {"f32", "float32", 4, Class::kFloat},
    {"f64", "float64", 8, Class::kFloat},
    {"c64", "complex64", 8, Class::kComplex},
}};

const Row& row(DType d) { return kRows[static_cast<size_t>(d)]; }

DType signed_of_bytes(size_t bytes) {
  switch (bytes) {
    case 1: return DType::kI8;
    case 2: return DType::kI16;
    case 4: return DType::kI32;
    default: return DType::kI64;
  }
}

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == text || kRows[i].numpy == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

size_t size_of(DType dtype) { return row(dtype).bytes; }
bool is_float(DType d) { return row(d).cls == Class::kFloat; }
bool is_complex(DType d) { return row(d).cls == Class::kComplex; }
bool is_signed(DType d) { return row(d).cls == Class::kSigned; }
bool is_unsigned(DType d) { return row(d).cls == Class::kUnsigned; }
bool is_integer(DType d) { return is_signed(d) || is_unsigned(d); }
bool is_half(DType d) { return d == DType::kF16 || d == DType::kBF16; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  Class ca = row(a).cls;
  Class cb = row(b).cls;
  if (ca > cb) {
    std::swap(a, b);
    std::swap(ca, cb);
  }
  if (cb == Class::kComplex || ca == Class::kBool) return b;
  if (cb == Class::kFloat) {
    if (ca != Class::kFloat) return b;
    if (is_half(a) && is_half(b)) return DType::kF32;
    return size_of(a) > size_of(b) ? a : b;
  }
  if (ca == cb) return size_of(a) > size_of(b) ? a : b;
  // Unsigned with signed: the smallest signed type that holds both; u64 with signed gives i64.
  size_t bytes = size_of(a) < size_of(b) ? size_of(b) : size_of(a) * 2;
  return signed_of_bytes(std::min<size_t>(bytes, 8));
}

}  // namespace tenon
