// Dimension expressions in a flat form for quick evaluation: names become indices into a table of
// values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/dim.h"

namespace tenon::runtime {

// Names and their indices. The first four are the machine's (base/machine_dims.h).
class SymbolTable {
 public:
  SymbolTable();
  uint32_t index(std::string_view name);  // adds it when new
  const uint32_t* find(std::string_view name) const;
  const std::string& name(uint32_t index) const { return names_[index]; }
  uint32_t size() const { return static_cast<uint32_t>(names_.size()); }
  // The values of the machine that runs, in the order of the first four names.
  static std::vector<int64_t> machine_values();

 private:
  std::vector<std::string> names_;
  std::map<std::string, uint32_t, std::less<>> indices_;
};

class DimProgram {
 public:
  DimProgram(const Dim& dim, SymbolTable& symbols);

  // Raises ValueError naming the expression on overflow, division by zero, and for a name whose
  // index is not below values.size().
  int64_t eval(std::span<const int64_t> values) const;
  const std::string& text() const { return text_; }

 private:
  enum class Op : uint8_t { kConst, kSymbol, kAdd, kSub, kMul, kFloorDiv, kMod, kMax, kMin };
  struct Inst {
    Op op;
    int64_t value = 0;
  };
  class Parser;
  [[noreturn]] void fail(std::string_view what) const;

  std::vector<Inst> code_;  // postfix
  size_t depth_ = 0;        // of the evaluation stack
  std::string text_;
};

}  // namespace tenon::runtime
