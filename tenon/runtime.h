// Tenon's run-time library: loads saved programs and calls them. No compiler, no LLVM.
//
//   #include <tenon/runtime.h>
//   auto step = tenon::load("step.tenon");
//   tenon::Array x = tenon::array({2, 64}, values);
//   tenon::Array y = step(x, params, 2.0f);      // checked like the function that was saved
//   std::vector<float> out = tenon::to_vector<float>(y);
//
// Structs of arrays are registered by TENON_STRUCT (program/record.h). With <tenon/tenon.h> the
// same load() takes and gives Tensors.
#pragma once

#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/base/dtype_of.h"
#include "tenon/base/error.h"
#include "tenon/base/of_thread.h"
#include "tenon/base/recycled.h"
#include "tenon/program/program.h"
#include "tenon/program/record.h"
#include "tenon/program/result.h"
#include "tenon/program/tree.h"
#include "tenon/runtime/array.h"

namespace tenon {

using program::LoadOptions;
using runtime::Array;

// An array of these values in row-major order. Raises ValueError when their number does not fit.
template <class T>
Array array(const std::vector<int64_t>& dims, const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, bool>) {
    return Array::copy_of(DType::kBool, dims, std::vector<uint8_t>(values.begin(), values.end()));
  } else {
    return Array::copy_of(dtype_of<T>(), dims, values);
  }
}

// The elements in row-major order. Raises TypeError unless they are stored as T is.
template <class T>
std::vector<T> to_vector(const Array& array) {
  if (!array.valid() || array.dtype() != dtype_of<T>()) {
    throw TypeError(fmt::format("to_vector: {} read as {}",
                                array.valid() ? array.describe() : "an array without memory",
                                name(dtype_of<T>())),
                    {.label = "to_vector_dtype"});
  }
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const auto* data = array.as<Stored>();
  return std::vector<T>(data, data + array.count());
}

// What a call returned: converts to the type that the function returns (a tensor, a vector, map,
// tuple, registered struct of them, or a static value). Raises TypeError [result_type] for another.
class CallResult {
 public:
  CallResult(program::Program program, const program::Leaves& call) : program_(std::move(program)) {
    const Reused<std::vector<Array>> results;
    program_.call(call, *results);
    arrays_.assign(std::move_iterator((*results).begin()), std::move_iterator((*results).end()));
  }

  template <class T>
  T as() const {
    return program::ResultReader(program_.signature(), arrays_).read<T>();
  }
  template <class T>
  operator T() const {  // NOLINT: that is what it is for
    return as<T>();
  }
  // The tensors, in order.
  std::span<const Array> arrays() const { return arrays_; }

 private:
  program::Program program_;
  std::vector<Array, Recycled<Array>> arrays_;
};

// A saved program: called with the arguments of the function that it was made from.
class LoadedProgram : public program::Program {
 public:
  explicit LoadedProgram(program::Program program) : program::Program(std::move(program)) {}

  // Raises what Signature::check raises; the same checks as the function's own call.
  template <class... Args>
  CallResult operator()(const Args&... args) const {
    const Reused<program::Leaves> leaves;
    Visitor visitor{*leaves, signature().tensors};
    program::walk_arguments(visitor, args...);
    return {*this, *leaves};
  }

 private:
  struct Visitor {
    program::Leaves& leaves;
    const std::vector<program::TensorGuard>& guards;
    size_t tensors = 0;

    void open(program::TokenKind kind, size_t count, std::string_view name) {
      leaves.open(kind, count, name);
    }
    void key(std::string_view name) { leaves.key(name); }
    void fixed(program::StaticView value, std::string_view type) { leaves.fixed(value, type); }
    template <class T>
    void tensor(const T& leaf) {
      const bool written = tensors < guards.size() && guards[tensors].writable;
      ++tensors;
      program::TensorLeaf<T>::append(leaves, leaf, written);
    }
  };
};

// Raises IoError, FormatError naming the file and the reason, and what bind() raises for
// `options.externals`.
inline LoadedProgram load(const std::string& path, const LoadOptions& options = {}) {
  return LoadedProgram(program::Program::load(path, options));
}

}  // namespace tenon
