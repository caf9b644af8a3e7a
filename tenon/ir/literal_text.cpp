#include "tenon/ir/literal_text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "tenon/base/dim.h"
#include "tenon/base/half.h"
#include "tenon/base/hash.h"

namespace tenon::ir {
namespace {

constexpr int64_t kElideOver = 16;

template <class T>
std::string decimal(T value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// `bits` is the NaN's pattern; `canonical` the one that reading "nan" gives.
std::string nan_text(uint64_t bits, uint64_t canonical) {
  return bits == canonical ? "nan" : fmt::format("{:#x}", bits);
}

std::string f32_text(float value) {
  if (std::isnan(value)) return nan_text(std::bit_cast<uint32_t>(value), 0x7fc00000u);
  return decimal(value);
}

std::string f64_text(double value) {
  if (std::isnan(value)) return nan_text(std::bit_cast<uint64_t>(value), 0x7ff8000000000000u);
  return decimal(value);
}

std::string half_text(uint16_t bits, float value, uint16_t canonical) {
  return std::isnan(value) ? nan_text(bits, canonical) : decimal(value);
}

bool is_splat(const Literal& literal) {
  const size_t size = size_of(literal.dtype());
  return literal.count() > 1 &&
         std::memcmp(literal.data(), literal.data() + size, literal.bytes() - size) == 0;
}

std::string list_text(const Literal& literal) {
  std::string text = "[";
  for (int64_t i = 0; i < literal.count(); ++i) {
    if (i > 0) text += ", ";
    text += element_text(literal, i);
  }
  return text + "]";
}

std::string elided_text(const Literal& literal) {
  return fmt::format("elided {} elements, {} to {}, digest {}", literal.count(),
                     element_text(literal, 0), element_text(literal, literal.count() - 1),
                     quoted(to_hex(hash_bytes(literal.span())).substr(0, 16)));
}

std::string type_text(const Literal& literal) {
  if (literal.rank() == 0) return std::string(name(literal.dtype()));
  const Shape shape(literal.dims().begin(), literal.dims().end());
  return fmt::format("tensor<{}, {}>", str(shape), name(literal.dtype()));
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

template <class Bits>
bool read_bits(std::string_view text, Bits& bits) {
  if (!text.starts_with("0x")) return false;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + 2, end, bits, 16);
  return error == std::errc() && stop == end;
}

// A decimal beyond the type's range is refused, so that no text means a value it does not spell.
template <class T, class Bits>
bool read_float(std::string_view text, T& value) {
  Bits bits{};
  if (read_bits(text, bits)) {
    value = std::bit_cast<T>(bits);
    return true;
  }
  if (text == "nan") {
    value = std::numeric_limits<T>::quiet_NaN();
    return true;
  }
  const bool negative = text.starts_with("-");
  if (text.substr(negative ? 1 : 0) == "inf") {
    value = negative ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    return true;
  }
  return read_number(text, value);
}

bool read_half(std::string_view text, Literal& literal, int64_t i) {
  uint16_t& out = literal.as_mutable<uint16_t>()[i];
  if (read_bits(text, out)) return true;
  double value = 0;
  if (!read_float<double, uint64_t>(text, value)) return false;
  literal.set_double(i, value);
  return !std::isfinite(value) || std::isfinite(literal.get_double(i));
}

template <class T>
bool read_integer(std::string_view text, Literal& literal, int64_t i) {
  return read_number(text, literal.as_mutable<T>()[i]);
}

}  // namespace

std::string float_text(double value) { return f64_text(value); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\{:02X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string element_text(const Literal& literal, int64_t i) {
  switch (literal.dtype()) {
    case DType::kBool: return literal.as<uint8_t>()[i] != 0 ? "true" : "false";
    case DType::kU64: return fmt::format("{}", literal.as<uint64_t>()[i]);
    case DType::kF16: {
      const uint16_t bits = literal.as<uint16_t>()[i];
      return half_text(bits, f16_to_float(bits), 0x7e00);
    }
    case DType::kBF16: {
      const uint16_t bits = literal.as<uint16_t>()[i];
      return half_text(bits, bf16_to_float(bits), 0x7fc0);
    }
    case DType::kF32: return f32_text(literal.as<float>()[i]);
    case DType::kF64: return f64_text(literal.as<double>()[i]);
    case DType::kC64: {
      const float* parts = literal.as<float>() + 2 * i;
      return fmt::format("({}, {})", f32_text(parts[0]), f32_text(parts[1]));
    }
    default: return fmt::format("{}", literal.get_int(i));
  }
}

std::string literal_text(const Literal& literal, LiteralForm form) {
  std::string text;
  if (literal.rank() == 0) {
    text = element_text(literal, 0);
  } else if (is_splat(literal)) {
    text = "splat " + element_text(literal, 0);
  } else if (literal.count() <= kElideOver || form == LiteralForm::kFull) {
    text = list_text(literal);
  } else if (form == LiteralForm::kElide) {
    text = elided_text(literal);
  } else {
    text = "digest " + to_hex(hash_bytes(literal.span()));
  }
  return text + " : " + type_text(literal);
}

bool read_element(std::string_view text, Literal& literal, int64_t i, int part) {
  switch (literal.dtype()) {
    case DType::kBool:
      literal.as_mutable<uint8_t>()[i] = text == "true" ? 1 : 0;
      return text == "true" || text == "false";
    case DType::kI8: return read_integer<int8_t>(text, literal, i);
    case DType::kI16: return read_integer<int16_t>(text, literal, i);
    case DType::kI32: return read_integer<int32_t>(text, literal, i);
    case DType::kI64: return read_integer<int64_t>(text, literal, i);
    case DType::kU8: return read_integer<uint8_t>(text, literal, i);
    case DType::kU16: return read_integer<uint16_t>(text, literal, i);
    case DType::kU32: return read_integer<uint32_t>(text, literal, i);
    case DType::kU64: return read_integer<uint64_t>(text, literal, i);
    case DType::kF16:
    case DType::kBF16: return read_half(text, literal, i);
    case DType::kF32: return read_float<float, uint32_t>(text, literal.as_mutable<float>()[i]);
    case DType::kF64: return read_float<double, uint64_t>(text, literal.as_mutable<double>()[i]);
    case DType::kC64:
      return read_float<float, uint32_t>(text, literal.as_mutable<float>()[2 * i + part]);
  }
  return false;
}

}  // namespace tenon::ir
