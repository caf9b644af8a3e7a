// How wide a vector loop runs on a target: lanes, vectors a value holds, and what becomes of the
// iterations that do not fill a vector.
#pragma once

#include <optional>

#include "tenon/codegen/divergence.h"
#include "tenon/codegen/target.h"
#include "tenon/kir/kernel.h"

namespace tenon::codegen {

struct VectorPlan {
  enum class Tail : uint8_t { kNone, kVectors, kMasked, kScalar };

  int lanes = 1;       // power of two
  int interleave = 1;  // power of two
  // kNone: the trip count is a multiple of lanes * interleave. kVectors: of lanes, so that the rest
  // runs in single whole vectors. kMasked: single vectors, the last with inactive lanes. kScalar:
  // one element at a time.
  Tail tail = Tail::kMasked;
  // How far ahead of a contiguous load the caches are filled; both 0: the machine's own prefetching
  // is enough. Quarters as in LoopSpec.
  struct Ahead {
    int64_t elements = 0;
    int64_t bytes = 0;
    int first_quarter = 0;
    int quarters = 4;
  };
  Ahead ahead;
  // The trip count when it is known.
  std::optional<int64_t> trip;
};

VectorPlan plan_vector_loop(const kir::Inst& loop, const Divergence& divergence,
                            const kir::Kernel& kernel, const Target& target);

}  // namespace tenon::codegen
