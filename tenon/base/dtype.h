// Element types. The set is closed; every op says which classes it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/base/api.h"

namespace tenon {

enum class DType : uint8_t {
  kBool,  // one byte, 0 or 1
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,  // two f32: real, imaginary
};

inline constexpr int kDTypeCount = 14;

// The spelling that users write: tenon::f32.
inline constexpr DType bool_ = DType::kBool;
inline constexpr DType i8 = DType::kI8;
inline constexpr DType i16 = DType::kI16;
inline constexpr DType i32 = DType::kI32;
inline constexpr DType i64 = DType::kI64;
inline constexpr DType u8 = DType::kU8;
inline constexpr DType u16 = DType::kU16;
inline constexpr DType u32 = DType::kU32;
inline constexpr DType u64 = DType::kU64;
inline constexpr DType f16 = DType::kF16;
inline constexpr DType bf16 = DType::kBF16;
inline constexpr DType f32 = DType::kF32;
inline constexpr DType f64 = DType::kF64;
inline constexpr DType c64 = DType::kC64;

// "bool", "i8", …, "bf16", "f32", "c64".
TENON_API std::string_view name(DType dtype);
// The inverse of name(), taking NumPy's spellings too ("float32", "int64"); nullopt if unknown.
TENON_API std::optional<DType> dtype_from_name(std::string_view name);
// Bytes of one element.
TENON_API size_t size_of(DType dtype);

bool is_float(DType dtype);     // f16, bf16, f32, f64
bool is_complex(DType dtype);   // c64
bool is_integer(DType dtype);   // i8…i64, u8…u64; not bool
bool is_signed(DType dtype);    // i8…i64
bool is_unsigned(DType dtype);  // u8…u64
// True when every arithmetic result is computed in f32 and rounded once to this type.
bool is_half(DType dtype);  // f16, bf16

// The common type of two array operands: NumPy's rules within integers and within floats (f16 with
// bf16 gives f32, u64 with a signed type gives i64). Across kinds the wider kind wins with its own
// width: bool < integer < float < complex, so i64 with f32 gives f32 and f64 with c64 gives c64.
DType promote(DType a, DType b);

}  // namespace tenon
