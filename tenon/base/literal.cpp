#include "tenon/base/literal.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tenon/base/half.h"

namespace tenon {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<const void> allocate_zeroed(size_t bytes, DType dtype,
                                            const std::vector<int64_t>& dims) {
  size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) {
    throw ValueError(
        fmt::format("literal: {}: cannot allocate {} bytes", describe(dtype, dims), bytes));
  }
  std::memset(memory, 0, rounded);
  return {memory, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

int64_t checked_count(DType dtype, const std::vector<int64_t>& dims) {
  int64_t count = element_count(dims);
  if (count > (int64_t{1} << 62) / static_cast<int64_t>(size_of(dtype))) {
    throw ValueError(fmt::format("literal: {} is larger than 2^62 bytes", describe(dtype, dims)),
                     {.label = "literal_size"});
  }
  return count;
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  // 2^digits is exact in a double where the largest T need not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= limit) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

// A double that rounds to any narrower float as `value` does: bits below a double's go to a sticky
// one.
double sticky_double(int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude >> 53) {
    uint64_t low = magnitude & 0x7ff;
    magnitude = (magnitude & ~uint64_t{0x7ff}) | (low ? 0x800 : 0);
  }
  double out = static_cast<double>(magnitude);
  return value < 0 ? -out : out;
}

template <class T>
T load(const std::byte* data, int64_t i) {
  T out;
  std::memcpy(&out, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return out;
}

template <class T>
void store(std::byte* data, int64_t i, T value) {
  std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

void check_index(int64_t i, int64_t count) {
  if (i < 0 || i >= count) {
    throw IndexError(fmt::format("literal: element {} of {}", i, count));
  }
}

}  // namespace

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      throw ValueError(fmt::format("shape: negative dimension {}", dim),
                       {.label = "shape_negative"});
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      throw ValueError("shape: the number of elements does not fit in 64 bits",
                       {.label = "shape_size"});
    }
  }
  return empty ? 0 : count;
}

std::vector<int64_t> contiguous_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> out(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    out[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return out;
}

std::string describe(DType dtype, std::span<const int64_t> dims) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(dims, ", "));
}

Literal::Literal(DType dtype, std::vector<int64_t> dims) : dtype_(dtype), dims_(std::move(dims)) {
  count_ = checked_count(dtype_, dims_);
  owner_ = allocate_zeroed(bytes(), dtype_, dims_);
  data_ = static_cast<const std::byte*>(owner_.get());
}

Literal Literal::borrow(DType dtype, std::vector<int64_t> dims, const void* data,
                        std::shared_ptr<const void> owner) {
  Literal out(dtype, {0});
  out.count_ = checked_count(dtype, dims);
  out.dims_ = std::move(dims);
  if (data != nullptr) {
    out.data_ = static_cast<const std::byte*>(data);
    out.owner_ = std::move(owner);
  } else if (out.count_ != 0) {
    throw ValueError("literal: no data for " + describe(dtype, out.dims_));
  }
  return out;
}

Literal Literal::scalar(DType dtype, double value) {
  Literal out(dtype, {});
  out.set_double(0, value);
  double back = out.get_double(0);
  bool exact = back == value || (std::isnan(value) && std::isnan(back));
  // The largest 64-bit integers read back as a double that they are not.
  if (is_integer(dtype)) {
    int digits = static_cast<int>(size_of(dtype)) * 8 - (is_signed(dtype) ? 1 : 0);
    exact = exact && value < std::ldexp(1.0, digits);
  }
  bool rounded =
      (is_float(dtype) || is_complex(dtype)) && (std::isfinite(back) || !std::isfinite(value));
  if (!exact && !rounded) {
    throw ValueError(fmt::format("scalar: {} has no {} value", value, name(dtype)),
                     {.label = "scalar_range"});
  }
  return out;
}

Literal Literal::scalar_int(DType dtype, int64_t value) {
  Literal out(dtype, {});
  out.set_int(0, value);
  bool exact = out.get_int(0) == value;
  if (dtype == DType::kU64) exact = value >= 0;
  if (is_float(dtype) || is_complex(dtype)) {
    double back = out.get_double(0);
    exact = back < 0x1p63 && exact;
  }
  if (!exact) {
    throw ValueError(fmt::format("scalar: {} has no {} value", value, name(dtype)),
                     {.label = "scalar_range"});
  }
  return out;
}

double Literal::get_double(int64_t i) const {
  check_index(i, count_);
  switch (dtype_) {
    case DType::kBool: return load<uint8_t>(data_, i) != 0 ? 1.0 : 0.0;
    case DType::kI8: return load<int8_t>(data_, i);
    case DType::kI16: return load<int16_t>(data_, i);
    case DType::kI32: return load<int32_t>(data_, i);
    case DType::kI64: return static_cast<double>(load<int64_t>(data_, i));
    case DType::kU8: return load<uint8_t>(data_, i);
    case DType::kU16: return load<uint16_t>(data_, i);
    case DType::kU32: return load<uint32_t>(data_, i);
    case DType::kU64: return static_cast<double>(load<uint64_t>(data_, i));
    case DType::kF16: return f16_to_float(load<uint16_t>(data_, i));
    case DType::kBF16: return bf16_to_float(load<uint16_t>(data_, i));
    case DType::kF32: return load<float>(data_, i);
    case DType::kF64: return load<double>(data_, i);
    case DType::kC64: return load<float>(data_, 2 * i);
  }
  throw InternalError("literal: unknown dtype");
}

int64_t Literal::get_int(int64_t i) const {
  check_index(i, count_);
  switch (dtype_) {
    case DType::kBool: return load<uint8_t>(data_, i) != 0 ? 1 : 0;
    case DType::kI8: return load<int8_t>(data_, i);
    case DType::kI16: return load<int16_t>(data_, i);
    case DType::kI32: return load<int32_t>(data_, i);
    case DType::kI64: return load<int64_t>(data_, i);
    case DType::kU8: return load<uint8_t>(data_, i);
    case DType::kU16: return load<uint16_t>(data_, i);
    case DType::kU32: return load<uint32_t>(data_, i);
    case DType::kU64: return static_cast<int64_t>(load<uint64_t>(data_, i));
    default: return saturate<int64_t>(get_double(i));
  }
}

void Literal::set_double(int64_t i, double value) {
  check_index(i, count_);
  std::byte* data = mutable_data();
  switch (dtype_) {
    case DType::kBool: return store<uint8_t>(data, i, value != 0 ? 1 : 0);
    case DType::kI8: return store(data, i, saturate<int8_t>(value));
    case DType::kI16: return store(data, i, saturate<int16_t>(value));
    case DType::kI32: return store(data, i, saturate<int32_t>(value));
    case DType::kI64: return store(data, i, saturate<int64_t>(value));
    case DType::kU8: return store(data, i, saturate<uint8_t>(value));
    case DType::kU16: return store(data, i, saturate<uint16_t>(value));
    case DType::kU32: return store(data, i, saturate<uint32_t>(value));
    case DType::kU64: return store(data, i, saturate<uint64_t>(value));
    case DType::kF16: return store(data, i, f16_from_double(value));
    case DType::kBF16: return store(data, i, bf16_from_double(value));
    case DType::kF32: return store(data, i, static_cast<float>(value));
    case DType::kF64: return store(data, i, value);
    case DType::kC64:
      store(data, 2 * i, static_cast<float>(value));
      return store(data, 2 * i + 1, 0.0f);
  }
}

void Literal::set_int(int64_t i, int64_t value) {
  check_index(i, count_);
  std::byte* data = mutable_data();
  switch (dtype_) {
    case DType::kBool: return store<uint8_t>(data, i, value != 0 ? 1 : 0);
    case DType::kI8:
    case DType::kU8: return store(data, i, static_cast<uint8_t>(value));
    case DType::kI16:
    case DType::kU16: return store(data, i, static_cast<uint16_t>(value));
    case DType::kI32:
    case DType::kU32: return store(data, i, static_cast<uint32_t>(value));
    case DType::kI64:
    case DType::kU64: return store(data, i, value);
    case DType::kF64: return store(data, i, static_cast<double>(value));
    default: return set_double(i, sticky_double(value));
  }
}

bool Literal::same(const Literal& other) const {
  return dtype_ == other.dtype_ && dims_ == other.dims_ &&
         (bytes() == 0 || std::memcmp(data_, other.data_, bytes()) == 0);
}

}  // namespace tenon
