// The names of a program's dimensions: bound from the shapes of its arguments, then compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/runtime/array.h"
#include "tenon/runtime/dim_program.h"
#include "tenon/runtime/executor.h"

namespace tenon::runtime {

// True when the bytes of a and b have an address in common.
bool overlap(const Array& a, const Array& b);
// Raises ValueError [argument_overlap] when two writable arguments do.
void check_writable_apart(const std::string& function, const std::vector<ArgumentSpec>& specs,
                          std::span<const Array> arguments);

class Binding {
 public:
  // `function` begins the errors. A name is bound by a dimension that is the bare name, else by one
  // of the form a*n + b. Raises ValueError when a name stands in an argument only inside other
  // expressions.
  Binding(std::string function, const std::vector<ArgumentSpec>& arguments, SymbolTable& symbols);

  // Fills values[4 …] (the machine's values stand before) from the arguments. Raises ShapeError:
  //   step: argument y: dim n is 4, but argument x has n = 3 [argument_dim]
  //   step: argument y: dim 1 is 7, expected 2*n = 6 for n = 3 [argument_dim]
  //   step: argument x: dim n is 40, outside its range [1, 32] [argument_range]
  //   step: argument x: dim 0 is 7, expected 2*n for a whole n [argument_dim]
  void bind(std::span<const Array> arguments, std::vector<int64_t>& values) const;
  uint32_t bound() const { return bound_; }  // names with a value after bind(), the machine's too

 private:
  struct Place {
    uint32_t argument;
    uint32_t axis;
    uint32_t symbol;
    DimRange range;
    int64_t scale = 1;  // the dimension is scale * name + offset
    int64_t offset = 0;
  };
  struct Expression {
    uint32_t argument;
    uint32_t axis;
    DimProgram program;
    std::vector<uint32_t> symbols;
  };
  [[noreturn]] void differ(const Place& place, const std::vector<int64_t>& values,
                           int64_t got) const;
  [[noreturn]] void not_whole(const Place& place, int64_t got) const;
  [[noreturn]] void out_of_range(const Place& place, int64_t got) const;
  [[noreturn]] void differ(const Expression& e, const std::vector<int64_t>& values, int64_t got,
                           int64_t expected) const;
  std::string begin(uint32_t argument) const;

  std::string function_;
  std::vector<std::string> routes_;
  std::vector<std::string> names_;  // by symbol
  std::vector<Place> first_;        // by symbol, from the first bound one on
  std::vector<Place> again_;
  std::vector<Expression> expressions_;
  uint32_t bound_ = 0;
};

}  // namespace tenon::runtime
