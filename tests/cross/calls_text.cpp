#include "calls_text.h"

#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/hash.h"

namespace tenon {
namespace {

using runtime::Array;

// Small numbers of both signs, the same everywhere. Element counts stay small, so all fit each
// dtype.
Array filled(DType dtype, const std::vector<int64_t>& dims, int64_t seed) {
  Literal values(dtype, dims);
  for (int64_t i = 0; i < values.count(); ++i) {
    const int64_t step = (i * 37 + seed * 11) % 29;
    const bool whole = !is_float(dtype) && !is_complex(dtype);
    values.set_double(
        i, whole ? static_cast<double>(step % 4) : static_cast<double>(step - 14) * 0.21875);
  }
  Array array = Array::empty(dtype, dims);  // writable, unlike a literal's memory
  if (values.bytes() != 0) std::memcpy(array.mutable_data(), values.data(), values.bytes());
  return array;
}

std::vector<int64_t> dims_of(const Shape& shape, int64_t n) {
  std::vector<int64_t> dims;
  for (const Dim& dim : shape) {
    dims.push_back(dim.eval([n](std::string_view) { return std::optional<int64_t>(n); }));
  }
  return dims;
}

std::string line(const char* what, const Array& array) {
  const Literal value = array.to_literal();
  const std::span bytes(static_cast<const std::byte*>(value.data()), value.bytes());
  std::string bits;
  for (size_t i = 0; i < bytes.size() && i < 64; ++i) {
    bits += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return fmt::format("  {} {} {} {:.16}\n", what, array.describe(), bits,
                     to_hex(hash_bytes(bytes)));
}

}  // namespace

std::string calls_text(program::Program program) {
  program::ExternalArrays weights;
  for (const program::Weight& weight : program.weights()) {
    weights[weight.name] = filled(weight.dtype, dims_of(weight.shape, 1), 5);
  }
  if (!weights.empty()) program.bind(weights);
  std::string text;
  for (int64_t n : {0, 1, 5, 37}) {
    std::vector<Array> arguments;
    for (const program::TensorGuard& guard : program.signature().tensors) {
      arguments.push_back(
          filled(guard.dtype, dims_of(guard.shape, n), static_cast<int64_t>(arguments.size())));
    }
    for (const Array& result : program.execute_raw(arguments)) text += line("gives", result);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (program.signature().tensors[i].writable) text += line("leaves", arguments[i]);
    }
  }
  return text;
}

}  // namespace tenon
