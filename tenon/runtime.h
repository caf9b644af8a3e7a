// Tenon's run-time library: loads saved programs and calls them. No compiler, no LLVM.
//
//   #include <tenon/runtime.h>
//   auto step = tenon::load("step.tenon");
//   tenon::Array y = step(x, params, 2.0f);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/base/dtype.h"
#include "tenon/base/error.h"
#include "tenon/program/program.h"
#include "tenon/program/record.h"
#include "tenon/program/result.h"
#include "tenon/program/tree.h"
#include "tenon/runtime/array.h"

namespace tenon {

using program::LoadOptions;
using runtime::Array;

// What a call returned: converts to the type that the function returns (an Array, a vector, map,
// tuple, registered struct of them, or a static value). Raises TypeError [result_type] for another.
class CallResult {
 public:
  CallResult(program::Program program, std::vector<Array> arrays)
      : program_(std::move(program)), arrays_(std::move(arrays)) {}

  template <class T>
  T as() const {
    return program::ResultReader(program_.signature(), arrays_).read<T>();
  }
  template <class T>
  operator T() const {  // NOLINT: that is what it is for
    return as<T>();
  }
  // The tensors, in order.
  const std::vector<Array>& arrays() const { return arrays_; }

 private:
  program::Program program_;
  std::vector<Array> arrays_;
};

// A saved program: called with the arguments of the function that it was made from.
class LoadedProgram : public program::Program {
 public:
  explicit LoadedProgram(program::Program program) : program::Program(std::move(program)) {}

  // Raises what Signature::check raises; the same checks as the function's own call.
  template <class... Args>
  CallResult operator()(const Args&... args) const {
    struct Visitor : program::Leaves {
      using program::Leaves::tensor;
    } leaves;
    program::walk_arguments(leaves, args...);
    return {*this, call(leaves)};
  }
};

// Raises IoError, FormatError naming the file and the reason, and what bind() raises for
// `options.externals`.
inline LoadedProgram load(const std::string& path, const LoadOptions& options = {}) {
  return LoadedProgram(program::Program::load(path, options));
}

}  // namespace tenon
