// The checked call: what a program was compiled for, as data, and the comparison of a call with it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/base/api.h"
#include "tenon/base/dim.h"
#include "tenon/program/leaf.h"
#include "tenon/runtime/executor.h"

namespace tenon::program {

// A tensor leaf's declaration.
struct TensorGuard {
  DType dtype = DType::kF32;
  Shape shape;
  bool writable = false;
  std::string location;  // where the user declared it ("model.cpp:31"); may be empty
  bool operator==(const TensorGuard&) const = default;
};

// One entry check, for printing and queries.
struct Guard {
  enum class Kind : uint8_t { kStructure, kStatic, kDtype, kShape };
  std::string route;  // of the argument; empty for the structure
  Kind kind;
  std::string expected;  // "f32", "[\"batch\", 64]", "2.0", "(tensor, {b: tensor, w: tensor})"
  std::string label;     // of the constraint: argument_tree, argument_static, argument_dtype, …
};
TENON_API std::string_view name(Guard::Kind kind);

// Arguments and results of a program. The tensors of arguments are the program's inputs in order;
// the tensors of results its results in order.
struct TENON_API Signature {
  std::string function;            // as errors begin: "step"
  std::vector<std::string> names;  // of positional arguments; may be shorter or empty
  Structure arguments;
  std::vector<TensorGuard> tensors;
  std::vector<StaticValue> statics;
  Structure results;
  std::vector<TensorGuard> result_tensors;
  std::vector<StaticValue> result_statics;

  // Compares a call in this order and raises at the first difference, naming the argument by its
  // route:
  //  1 number of positional arguments and set of keywords  ValueError  [argument_count]
  //  2 tree structure                                       ValueError  [argument_tree]
  //  3 a static value (exact)                               ValueError  [argument_static]
  //  4 a tensor's place holds something else                TypeError   [argument_type]
  //  5 a writable tensor: dtype                             ValueError  [argument_dtype]
  //    read-only memory for it                              ValueError  [argument_writable]
  //  6 a tensor: dtype                                      ValueError  [argument_dtype]
  //    rank                                                 ShapeError  [argument_rank]
  //    a static dimension                                   ShapeError  [argument_dim]
  // Names, their ranges and expressions are compared by the executor. Appends the tensors to
  // `out`. One pass over flat tables; nothing is allocated when all is right but what `out` needs.
  void check(const Leaves& call, std::vector<runtime::Array>& out) const;
  // The same for bare arrays in the order of the tensors: checks 5 and 6, and their number
  // [argument_count].
  void check_raw(std::span<const runtime::Array> arrays) const;

  // Routes of the tensors, in order.
  std::vector<std::string> tensor_routes() const;
  std::vector<runtime::ArgumentSpec> argument_specs() const;
  std::vector<Guard> guards() const;
  // (x: f32["batch", 64], p: {b: f32[32], w: f32[64, 32]}, gain = 2.0) → f32["batch", 32]
  std::string str() const;
  // Raises ValueError when tables and structures disagree (an artifact may hold anything).
  void validate() const;
};

}  // namespace tenon::program
