// Which values of a vector loop differ between its lanes.
#pragma once

#include <unordered_map>

#include "tenon/kir/kernel.h"

namespace tenon::codegen {

// kAffine: an integer a + lane * s with a and s uniform; known by its first lane.
enum class Spread : uint8_t { kUniform, kAffine, kVarying };

class Divergence {
 public:
  // Analyses the body of `loop`, a kFor whose variable takes consecutive values in the lanes.
  explicit Divergence(const kir::Inst& loop);

  // kUniform for every value defined outside the loop.
  Spread of(kir::Val value) const {
    auto found = spread_.find(value);
    return found == spread_.end() ? Spread::kUniform : found->second;
  }

 private:
  void visit(const kir::Block& block);
  void visit_loop(const kir::Inst& inst);
  Spread result(const kir::Inst& inst) const;
  void raise(kir::Val value, Spread spread);

  std::unordered_map<const kir::Inst*, Spread> spread_;
  bool changed_ = false;
};

}  // namespace tenon::codegen
